// Tags the jets of a file with ParticleNet: a whole program around a generated model.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "examples/device_named.h"
#include "examples/jet_batches.h"
#include "examples/jets.h"
#include "examples/score_plot.h"
#include "models/particle_net.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace examples {
namespace {

constexpr char kUsage[] = R"(Tags jets with ParticleNet.

    tag_jets [--input=FILE] [--device=cpu|openmp|cuda] [--batch=N] [--plot=FILE]

Prints a line for each jet, in the order of the file: its number, how many particles and vertices
it has, the probability of each class and the most likely class; then, for each class, how many jets
it found, how many there are, and how many of these it found. Jets of equal size are run together and
none is padded. A jet that is too small for the model's nearest neighbours gets a line that says so.

  --input=FILE   The jets; by default a sample of simulated jets, examples/data/jets.npz, on which
                 the network was not trained.
                 .npz: the arrays pf_offsets, pf_points, pf_features, sv_offsets, sv_points,
                       sv_features and, for the truth, label, which
                       models/training/make_jets.py describes
                 .npy: a float32 array [jets, particles, 22]: Δη, Δφ and 20 features of each
                       particle; no vertices; zeros after the last particle of a jet are left out
  --device=NAME  cpu: one thread (default); openmp: OMP_NUM_THREADS threads; cuda: the GPU, in a
                 build with CUDA (bazel run --config=cuda)
  --batch=N      The most jets to run at once, 128 by default.
  --plot=FILE    Draws the distribution of each class's probabilities, as SVG.
  --help         Prints this.

What the network was trained on, and how well it tags, is in models/training/README.md.
)";

// The classes in the order of the model's output; models/training/make_jets.py defines them.
constexpr std::array kClasses = {"qcd_light", "qcd_c", "qcd_b", "w_qq",
                                 "z_bb",      "h_bb",  "t_bqq", "t_bq"};

struct Options {
  std::string input;
  std::string plot;
  std::string device = "cpu";
  int64_t batch = 128;
  bool help = false;
};

// Reads --name=value or --name value.
Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      options.help = true;
      continue;
    }
    if (name != "--input" && name != "--device" && name != "--batch" && name != "--plot") {
      throw std::runtime_error("unknown argument '" + arguments[i] + "'; see --help.");
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      throw std::runtime_error(name + " needs a value; see --help.");
    }
    const std::string value =
        equals == std::string::npos ? arguments[++i] : arguments[i].substr(equals + 1);
    if (name == "--input") options.input = value;
    if (name == "--device") options.device = value;
    if (name == "--plot") options.plot = value;
    if (name == "--batch") {
      const char* end = value.data() + value.size();
      const auto [stop, error] = std::from_chars(value.data(), end, options.batch);
      if (error != std::errc() || stop != end || options.batch < 1) {
        throw std::runtime_error("--batch=" + value + " is not a positive number.");
      }
    }
  }
  return options;
}

// A path as the user means it: `bazel run` starts programs in another folder, and names the user's.
std::string UserPath(const std::string& path) {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  return folder == nullptr ? path : (std::filesystem::path(folder) / path).string();
}

// The file to read.
std::string InputPath(const std::string& input, const char* program) {
  if (!input.empty()) return UserPath(input);
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) {
    throw std::runtime_error("the sample of jets can't be found (" + error +
                             "); name a file with --input.");
  }
  return runfiles->Rlocation(SAMPLE_RLOCATION);
}

// What became of a jet.
struct Tag {
  std::array<float, kClasses.size()> probabilities{};
  std::string refusal;  // why it has no probabilities

  size_t Best() const {
    return std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
  }
};

void TagBatch(const Jets& jets, const JetBatch& batch, particle_net::Session& session,
              PackedConstituents& particles, PackedConstituents& vertices,
              std::vector<float>& masks, std::vector<Tag>& tags) {
  particles.Pack(jets.particles, batch.jets);
  vertices.Pack(jets.vertices, batch.jets);
  // Masks mark what is there; nothing is padded, so all of it is.
  masks.resize(std::max(masks.size(), static_cast<size_t>(batch.size() * std::max(batch.particles,
                                                                                  batch.vertices))),
               1.0f);

  const int64_t n = batch.size();
  particle_net::Outputs outputs;
  try {
    outputs = session.Run({
        .pf_points = {particles.points.data(), {n, kPointAxes, batch.particles}},
        .pf_features = {particles.features.data(), {n, kParticleFeatures, batch.particles}},
        .pf_mask = {masks.data(), {n, 1, batch.particles}},
        .sv_points = {vertices.points.data(), {n, kPointAxes, batch.vertices}},
        .sv_features = {vertices.features.data(), {n, kVertexFeatures, batch.vertices}},
        .sv_mask = {masks.data(), {n, 1, batch.vertices}},
    });
  } catch (const sofie::ShapeError& error) {
    for (const int64_t jet : batch.jets) tags[jet].refusal = error.what();
    return;
  }
  const float* row = outputs.softmax.data;
  for (const int64_t jet : batch.jets) {
    std::copy_n(row, kClasses.size(), tags[jet].probabilities.begin());
    row += kClasses.size();
  }
}

void Print(const Jets& jets, const std::vector<Tag>& tags) {
  std::printf("#  jet particles vertices");
  for (const char* name : kClasses) std::printf(" %9s", name);
  std::printf("  most likely\n");
  for (int64_t jet = 0; jet < jets.size(); ++jet) {
    const Tag& tag = tags[jet];
    std::printf("%6lld %9lld %8lld", static_cast<long long>(jet),
                static_cast<long long>(jets.particles.Count(jet)),
                static_cast<long long>(jets.vertices.Count(jet)));
    if (!tag.refusal.empty()) {
      std::printf("  too small: %s\n", tag.refusal.c_str());
      continue;
    }
    for (const float probability : tag.probabilities) std::printf(" %9.6f", probability);
    std::printf("  %s\n", kClasses[tag.Best()]);
  }
}

// Whether a jet is known to be of this class.
bool IsOf(const Jets& jets, int64_t jet, size_t label) {
  return !jets.labels.empty() && jets.labels[jet] == static_cast<int32_t>(label);
}

// How many of the tagged jets were found to be of each class, beside the truth if it is known.
void PrintClasses(const Jets& jets, const std::vector<Tag>& tags) {
  const bool known = !jets.labels.empty();
  std::printf("# class     found%s\n", known ? "  true  both" : "");
  int64_t all = 0;
  int64_t right = 0;
  for (size_t label = 0; label < kClasses.size(); ++label) {
    int64_t found = 0;
    int64_t there = 0;
    int64_t both = 0;
    for (int64_t jet = 0; jet < jets.size(); ++jet) {
      if (!tags[jet].refusal.empty()) continue;
      const bool best = tags[jet].Best() == label;
      found += best;
      there += IsOf(jets, jet, label);
      both += best && IsOf(jets, jet, label);
    }
    std::printf("# %-9s %5lld", kClasses[label], static_cast<long long>(found));
    if (known) {
      std::printf(" %5lld %5lld", static_cast<long long>(there), static_cast<long long>(both));
    }
    std::printf("\n");
    all += there;
    right += both;
  }
  if (known && all > 0) {
    std::printf("# accuracy %.3f\n", static_cast<double>(right) / static_cast<double>(all));
  }
}

std::vector<ScorePanel> ScorePanels(const Jets& jets, const std::vector<Tag>& tags) {
  std::vector<ScorePanel> panels;
  for (size_t label = 0; label < kClasses.size(); ++label) {
    ScorePanel& panel = panels.emplace_back(ScorePanel{kClasses[label], {}, {}});
    for (int64_t jet = 0; jet < jets.size(); ++jet) {
      if (!tags[jet].refusal.empty()) continue;
      std::vector<float>& scores = IsOf(jets, jet, label) ? panel.signal : panel.others;
      scores.push_back(tags[jet].probabilities[label]);
    }
  }
  return panels;
}

void TagJets(const Options& options, const char* program) {
  const sofie::Device device = DeviceNamed(options.device);
  const Jets jets = ReadJets(InputPath(options.input, program));
  particle_net::Session session(device);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<Tag> tags(static_cast<size_t>(jets.size()));
  PackedConstituents particles;
  PackedConstituents vertices;
  std::vector<float> masks;
  const std::vector<JetBatch> batches = MakeBatches(jets, options.batch);
  for (const JetBatch& batch : batches) {
    TagBatch(jets, batch, session, particles, vertices, masks, tags);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  Print(jets, tags);
  PrintClasses(jets, tags);
  if (!options.plot.empty()) WriteScorePlot(UserPath(options.plot), ScorePanels(jets, tags));
  const auto refused =
      std::count_if(tags.begin(), tags.end(), [](const Tag& tag) { return !tag.refusal.empty(); });
  const auto tagged = static_cast<long long>(jets.size() - refused);
  std::printf("%lld jets tagged on %s in %zu batches and %.3f s: %.0f jets/s", tagged,
              device.ToString().c_str(), batches.size(), seconds,
              static_cast<double>(tagged) / seconds);
  if (refused > 0) std::printf("; %lld jets too small", static_cast<long long>(refused));
  std::printf("\n");
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  try {
    const examples::Options options = examples::ParseOptions({argv + 1, argv + argc});
    if (options.help) {
      std::fputs(examples::kUsage, stdout);
      return EXIT_SUCCESS;
    }
    examples::TagJets(options, argv[0]);
    if (std::fflush(stdout) != 0) throw std::runtime_error("the output can't be written.");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "tag_jets: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
