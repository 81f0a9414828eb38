// Writes the class probabilities that ParticleNet gives to the jets of a file.
//
//     score JETS.npz cpu|openmp|cuda PROBABILITIES
//
// PROBABILITIES becomes float32[jets, 8], little-endian, without a header; the rows of jets that
// are too small for the model's nearest neighbours are NaN. Prints how many jets a second it
// tagged, from host memory to host memory, with all plans made: the faster one of two passes after
// the first.
//
// Jets of about equal size share a batch and are padded to its largest.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/device_named.h"
#include "examples/jets.h"
#include MODEL_HEADER

namespace training {
namespace {

namespace model = MODEL_NAMESPACE;
using examples::Constituents;
using examples::Jets;

constexpr int64_t kClasses = 8;
constexpr int64_t kNeighbours = 17;  // a jet's own point included
constexpr int64_t kBatch = 512;

// One kind of a batch's constituents, as the model takes them.
struct Padded {
  int64_t count = 0;            // of each jet, with padding
  std::vector<float> points;    // [jets, kPointAxes, count]
  std::vector<float> features;  // [jets, feature_count, count]
  std::vector<float> mask;      // [jets, 1, count]
};

// Scatters rows[n, columns] to columns[columns, count] of a jet.
void Transpose(const float* rows, int64_t n, int64_t columns, int64_t count, float* out) {
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      out[column * count + row] = rows[row * columns + column];
    }
  }
}

Padded Pad(const Constituents& constituents, const std::vector<int64_t>& jets) {
  Padded padded;
  for (const int64_t jet : jets) padded.count = std::max(padded.count, constituents.Count(jet));
  const auto rows = static_cast<int64_t>(jets.size()) * padded.count;
  padded.points.resize(rows * examples::kPointAxes);
  padded.features.resize(rows * constituents.feature_count);
  padded.mask.resize(rows);
  for (size_t i = 0; i < jets.size(); ++i) {
    const int64_t first = constituents.offsets[jets[i]];
    const int64_t n = constituents.Count(jets[i]);
    const int64_t begin = static_cast<int64_t>(i) * padded.count;
    Transpose(constituents.points.data() + first * examples::kPointAxes, n, examples::kPointAxes,
              padded.count, padded.points.data() + begin * examples::kPointAxes);
    Transpose(constituents.features.data() + first * constituents.feature_count, n,
              constituents.feature_count, padded.count,
              padded.features.data() + begin * constituents.feature_count);
    std::fill_n(padded.mask.begin() + begin, n, 1.0f);
  }
  return padded;
}

struct Batch {
  std::vector<int64_t> jets;
  Padded particles;
  Padded vertices;
};

// The jets that are large enough, the largest first.
std::vector<Batch> MakeBatches(const Jets& jets) {
  const auto size = [&](int64_t jet) {
    return jets.particles.Count(jet) + jets.vertices.Count(jet);
  };
  std::vector<int64_t> order(static_cast<size_t>(jets.size()));
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int64_t jet) { return size(jet) < kNeighbours; });
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return size(a) > size(b); });
  std::vector<Batch> batches;
  for (size_t begin = 0; begin < order.size(); begin += kBatch) {
    const size_t end = std::min(order.size(), begin + kBatch);
    Batch& batch = batches.emplace_back();
    batch.jets.assign(order.begin() + begin, order.begin() + end);
    batch.particles = Pad(jets.particles, batch.jets);
    batch.vertices = Pad(jets.vertices, batch.jets);
  }
  return batches;
}

// Tags all batches; returns the seconds that took.
double Tag(const std::vector<Batch>& batches, model::Session& session,
           std::vector<float>& probabilities) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (const Batch& batch : batches) {
    const auto n = static_cast<int64_t>(batch.jets.size());
    const auto& [n_pf, pf_points, pf_features, pf_mask] = batch.particles;
    const auto& [n_sv, sv_points, sv_features, sv_mask] = batch.vertices;
    const model::Outputs outputs = session.Run({
        .pf_points = {pf_points.data(), {n, examples::kPointAxes, n_pf}},
        .pf_features = {pf_features.data(), {n, examples::kParticleFeatures, n_pf}},
        .pf_mask = {pf_mask.data(), {n, 1, n_pf}},
        .sv_points = {sv_points.data(), {n, examples::kPointAxes, n_sv}},
        .sv_features = {sv_features.data(), {n, examples::kVertexFeatures, n_sv}},
        .sv_mask = {sv_mask.data(), {n, 1, n_sv}},
    });
    const float* row = outputs.softmax.data;
    for (const int64_t jet : batch.jets) {
      std::copy_n(row, kClasses, probabilities.begin() + jet * kClasses);
      row += kClasses;
    }
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void Score(const std::string& input, const std::string& device, const std::string& output) {
  const Jets jets = examples::ReadJets(input);
  const std::vector<Batch> batches = MakeBatches(jets);
  model::Session session(examples::DeviceNamed(device));
  std::vector<float> probabilities(static_cast<size_t>(jets.size() * kClasses),
                                   std::numeric_limits<float>::quiet_NaN());
  Tag(batches, session, probabilities);
  const double first = Tag(batches, session, probabilities);
  const double seconds = std::min(first, Tag(batches, session, probabilities));

  std::ofstream file(output, std::ios::binary);
  file.write(reinterpret_cast<const char*>(probabilities.data()),
             static_cast<std::streamsize>(probabilities.size() * sizeof(float)));
  if (!file.flush()) throw std::runtime_error(output + ": the file can't be written.");
  int64_t tagged = 0;
  for (const Batch& batch : batches) tagged += static_cast<int64_t>(batch.jets.size());
  std::printf("%.1f\n", static_cast<double>(tagged) / seconds);
}

}  // namespace
}  // namespace training

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("usage: score JETS.npz cpu|openmp|cuda PROBABILITIES");
    training::Score(argv[1], argv[2], argv[3]);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "score: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
