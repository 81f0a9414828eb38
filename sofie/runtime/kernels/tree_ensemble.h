// Decision trees: their tables, and the walk from a root to a leaf.
#ifndef SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_H_
#define SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_H_

#include <cstdint>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/combine.h"

namespace sofie::kernels {

// Comparisons of a feature with a node's threshold; NaN takes the branch that the node says.
enum class TreeBranch : int32_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual };

// How the votes for a target are joined.
enum class TreeAggregate : uint8_t { kSum, kAverage, kMin, kMax };

// scores[r, t] joins the votes for target t of the leaves that row r of x[rows, features] reaches,
// one in each tree.
//
// A child, or a root, is a node if it is not negative, else the complement of a leaf. Leaf l has
// the votes from vote_begin[l] to vote_begin[l + 1].
template <class X, class T>
struct TreeEnsembleArgs {
  const X* x = nullptr;
  const T* thresholds = nullptr;        // [nodes]
  const int32_t* nodes = nullptr;       // [nodes, 3]: feature · 16 + missing · 8 + branch, children
  const int32_t* roots = nullptr;       // [trees]
  const int32_t* vote_begin = nullptr;  // [leaves + 1]
  const int32_t* vote_target = nullptr;
  const T* vote_weight = nullptr;
  T* scores = nullptr;
  int64_t rows = 0;
  int64_t features = 0;
  int64_t trees = 0;
  int64_t targets = 1;
  TreeAggregate aggregate = TreeAggregate::kSum;

  // The leaf that a row reaches.
  ALPAKA_FN_HOST_ACC int32_t Leaf(const X* row, int32_t at) const {
    while (at >= 0) {
      const int32_t* const node = nodes + 3 * int64_t{at};
      const T value = static_cast<T>(row[node[0] >> 4]);
      at = Holds(value, thresholds[at], node[0]) ? node[1] : node[2];
    }
    return ~at;
  }

  // What a score starts from, and a score with one more vote.
  ALPAKA_FN_HOST_ACC T Start() const {
    if (aggregate == TreeAggregate::kMin) return Min<T>::Identity();
    if (aggregate == TreeAggregate::kMax) return Max<T>::Identity();
    return T{0};
  }
  ALPAKA_FN_HOST_ACC T Join(T score, T vote) const {
    if (aggregate == TreeAggregate::kMin) return Minimum(score, vote);
    if (aggregate == TreeAggregate::kMax) return Maximum(score, vote);
    return score + vote;
  }
  // A target without a vote has the score 0.
  ALPAKA_FN_HOST_ACC T End(T score) const {
    if (aggregate == TreeAggregate::kAverage) return score / static_cast<T>(trees);
    if (aggregate == TreeAggregate::kSum) return score;
    return score == Start() ? T{0} : score;
  }

 private:
  ALPAKA_FN_HOST_ACC static bool Holds(T value, T threshold, int32_t packed) {
    const auto branch = static_cast<TreeBranch>(packed & 7);
    // As ONNX Runtime has it: NaN differs from every threshold.
    if (IsNaN(value)) return (packed & 8) != 0 || branch == TreeBranch::kNotEqual;
    switch (branch) {
      case TreeBranch::kLessEqual:
        return value <= threshold;
      case TreeBranch::kLess:
        return value < threshold;
      case TreeBranch::kGreaterEqual:
        return value >= threshold;
      case TreeBranch::kGreater:
        return value > threshold;
      case TreeBranch::kEqual:
        return value == threshold;
      case TreeBranch::kNotEqual:
        return value != threshold;
    }
    return false;
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_H_
