// Runs a Transformer on jets of very different sizes in one call: their particles lie one after
// another, and none is padded. docs/packed_attention.md says how a model comes to take them so.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/device_named.h"
#include "examples/jets.h"
#include "models/packed_transformer.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace examples {
namespace {

constexpr char kUsage[] = R"(Runs a Transformer on jets of all sizes in one call.

    serve_packed [--device=cpu|openmp|cuda]

Takes the sample of simulated jets, examples/data/jets.npz, and prints the time of a call with all
jets packed, that of a call with all of them padded to the longest, and by how much any probability
differs from that of its jet alone. The model's weights are random numbers.
)";

constexpr int64_t kFeatures = 16;  // of a particle's, the first ones
constexpr int64_t kClasses = 5;
constexpr int kCalls = 5;
constexpr float kTolerance = 1e-5f;

// Sequences one after another.
struct Batch {
  std::vector<float> features;   // [rows, kFeatures]
  std::vector<int64_t> lengths;  // of the sequences

  int64_t rows() const { return static_cast<int64_t>(features.size()) / kFeatures; }

  // Adds a jet, and zeros behind it up to `length` rows.
  void Add(const Jets& jets, int64_t jet, int64_t length) {
    const Constituents& particles = jets.particles;
    for (int64_t row = particles.offsets[jet]; row < particles.offsets[jet + 1]; ++row) {
      const float* const from = particles.features.data() + row * kParticleFeatures;
      features.insert(features.end(), from, from + kFeatures);
    }
    features.resize(features.size() + (length - particles.Count(jet)) * kFeatures);
    lengths.push_back(length);
  }
};

std::vector<float> Run(packed_transformer::Session& session, const Batch& batch) {
  const auto sequences = static_cast<int64_t>(batch.lengths.size());
  const packed_transformer::Outputs outputs =
      session.Run({.features = {batch.features.data(), {batch.rows(), kFeatures}},
                   .lengths = {batch.lengths.data(), {sequences}}});
  return {outputs.probabilities.data, outputs.probabilities.data + sequences * kClasses};
}

// The median time of a call, in seconds.
double Time(packed_transformer::Session& session, const Batch& batch) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  Run(session, batch);
  for (int call = 0; call < kCalls; ++call) {
    const Clock::time_point begin = Clock::now();
    Run(session, batch);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kCalls / 2, seconds.end());
  return seconds[kCalls / 2];
}

std::string SamplePath(const char* program) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) throw std::runtime_error("the sample can't be found: " + error);
  return runfiles->Rlocation(SAMPLE_RLOCATION);
}

void Serve(const std::string& device_name, const char* program) {
  const sofie::Device device = DeviceNamed(device_name);
  const Jets jets = ReadJets(SamplePath(program));
  packed_transformer::Session session(device);

  int64_t longest = 0;
  for (int64_t jet = 0; jet < jets.size(); ++jet) {
    longest = std::max(longest, jets.particles.Count(jet));
  }
  Batch packed;
  Batch padded;
  for (int64_t jet = 0; jet < jets.size(); ++jet) {
    packed.Add(jets, jet, jets.particles.Count(jet));
    padded.Add(jets, jet, longest);
  }

  const std::vector<float> together = Run(session, packed);
  float difference = 0;
  for (int64_t jet = 0; jet < jets.size(); ++jet) {
    Batch alone;
    alone.Add(jets, jet, jets.particles.Count(jet));
    const std::vector<float> probabilities = Run(session, alone);
    for (int64_t i = 0; i < kClasses; ++i) {
      difference = std::max(difference, std::abs(probabilities[i] - together[jet * kClasses + i]));
    }
  }
  if (!(difference <= kTolerance)) {
    throw std::runtime_error("a jet's probabilities depend on the other jets: they differ by " +
                             std::to_string(difference));
  }
  const double packed_seconds = Time(session, packed);
  const double padded_seconds = Time(session, padded);
  std::printf("%lld jets on %s, %lld particles in all, at most %lld in one\n",
              static_cast<long long>(jets.size()), device.ToString().c_str(),
              static_cast<long long>(packed.rows()), static_cast<long long>(longest));
  std::printf("packed: %.2f ms a call, padded: %.2f ms; packed is %.2f times as fast\n",
              1e3 * packed_seconds, 1e3 * padded_seconds, padded_seconds / packed_seconds);
  std::printf("largest difference from a jet alone: %.1e\n", difference);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  try {
    std::string device = "cpu";
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--help") {
        std::fputs(examples::kUsage, stdout);
        return EXIT_SUCCESS;
      }
      if (argument.rfind("--device=", 0) != 0) {
        throw std::runtime_error("unknown argument '" + argument + "'; see --help.");
      }
      device = argument.substr(9);
    }
    examples::Serve(device, argv[0]);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "serve_packed: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
