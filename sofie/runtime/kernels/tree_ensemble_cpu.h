// Decision trees on the CPU.
#ifndef SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_CPU_H_
#define SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_CPU_H_

#include <algorithm>
#include <cstdint>

#include "sofie/runtime/kernels/tree_ensemble.h"

namespace sofie::kernels {

// The units are tiles of rows: several rows go through a tree while it is in the cache, and their
// walks do not wait for each other.
template <class X, class T>
struct TreeEnsembleOnCpu {
  static constexpr int64_t kTile = 16;

  TreeEnsembleArgs<X, T> args;

  static int64_t Tiles(int64_t rows) { return (rows + kTile - 1) / kTile; }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const TreeEnsembleArgs<X, T> a = args;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTile;
      const int64_t rows = std::min(kTile, a.rows - first);
      T* const scores = a.scores + first * a.targets;
      std::fill_n(scores, rows * a.targets, a.Start());
      for (int64_t tree = 0; tree < a.trees; ++tree) {
        int32_t leaf[kTile];
        for (int64_t r = 0; r < rows; ++r) {
          leaf[r] = a.Leaf(a.x + (first + r) * a.features, a.roots[tree]);
        }
        for (int64_t r = 0; r < rows; ++r) {
          for (int32_t vote = a.vote_begin[leaf[r]]; vote < a.vote_begin[leaf[r] + 1]; ++vote) {
            T& score = scores[r * a.targets + a.vote_target[vote]];
            score = a.Join(score, a.vote_weight[vote]);
          }
        }
      }
      for (int64_t i = 0; i < rows * a.targets; ++i) scores[i] = a.End(scores[i]);
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_CPU_H_
