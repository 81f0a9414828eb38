#include "examples/jet_batches.h"

#include <algorithm>
#include <map>
#include <utility>

namespace examples {
namespace {

// Appends `rows` of `columns` values each as `columns` rows.
void AppendTransposed(const float* values, int64_t rows, int64_t columns, std::vector<float>& out) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) out.push_back(values[row * columns + column]);
  }
}

}  // namespace

std::vector<JetBatch> MakeBatches(const Jets& jets, int64_t most) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> groups;
  for (int64_t jet = 0; jet < jets.size(); ++jet) {
    groups[{jets.particles.Count(jet), jets.vertices.Count(jet)}].push_back(jet);
  }
  std::vector<JetBatch> batches;
  for (const auto& [sizes, group] : groups) {
    const auto count = static_cast<int64_t>(group.size());
    const int64_t parts = (count + most - 1) / most;
    for (int64_t part = 0; part < parts; ++part) {
      batches.push_back(
          {sizes.first,
           sizes.second,
           {group.begin() + count * part / parts, group.begin() + count * (part + 1) / parts}});
    }
  }
  const auto rows = [](const JetBatch& batch) {
    return batch.size() * (batch.particles + batch.vertices);
  };
  std::stable_sort(batches.begin(), batches.end(),
                   [&](const JetBatch& a, const JetBatch& b) { return rows(a) > rows(b); });
  return batches;
}

void PackedConstituents::Pack(const Constituents& constituents, const std::vector<int64_t>& jets) {
  points.clear();
  features.clear();
  for (const int64_t jet : jets) {
    const int64_t first = constituents.offsets[jet];
    const int64_t count = constituents.Count(jet);
    AppendTransposed(constituents.points.data() + first * kPointAxes, count, kPointAxes, points);
    AppendTransposed(constituents.features.data() + first * constituents.feature_count, count,
                     constituents.feature_count, features);
  }
}

}  // namespace examples
