// Jets grouped by their size, so that none is padded.
#ifndef EXAMPLES_JET_BATCHES_H_
#define EXAMPLES_JET_BATCHES_H_

#include <cstdint>
#include <vector>

#include "examples/jets.h"

namespace examples {

// Jets with equal numbers of particles and of vertices.
struct JetBatch {
  int64_t particles = 0;
  int64_t vertices = 0;
  std::vector<int64_t> jets;  // their indices, ascending

  int64_t size() const { return static_cast<int64_t>(jets.size()); }
};

// All jets, at most `most` to a batch, the batches with the most particles and vertices in total
// first: a session that runs them in this order takes all its memory at the beginning. The batches
// of one size differ by one jet at most, so that they need two plans at most.
std::vector<JetBatch> MakeBatches(const Jets& jets, int64_t most);

// The rows of a batch in the order of the model's inputs: points [jets, kPointAxes, n] and features
// [jets, feature_count, n], n being the number of particles or vertices of each jet.
struct PackedConstituents {
  std::vector<float> points;
  std::vector<float> features;

  void Pack(const Constituents& constituents, const std::vector<int64_t>& jets);
};

}  // namespace examples

#endif  // EXAMPLES_JET_BATCHES_H_
