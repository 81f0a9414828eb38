// Decision trees on a GPU.
#ifndef SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_GPU_H_
#define SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_GPU_H_

#include <cstdint>

#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/tree_ensemble.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// A warp for each row; its threads walk different trees. The leaves' votes are joined in the order
// of the trees' numbers within each thread, or for several targets over all, so that results do not
// change from run to run.
template <class X, class T>
struct TreeEnsembleOnGpu {
  TreeEnsembleArgs<X, T> args;

  static void Launch(LaunchContext& context, const TreeEnsembleArgs<X, T>& args) {
    constexpr int64_t kRows = kBlockThreads / kWarpThreads;
    LaunchBlocks(context, (args.rows + kRows - 1) / kRows, 16, TreeEnsembleOnGpu{args});
  }

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    constexpr int64_t kRows = kBlockThreads / kWarpThreads;
    const int64_t warps = int64_t{BlockCount(acc)} * kRows;
    const int64_t lane = ThreadIndex(acc) % kWarpThreads;
    for (int64_t row = int64_t{BlockIndex(acc)} * kRows + ThreadIndex(acc) / kWarpThreads;
         row < args.rows; row += warps) {
      if (args.targets == 1) {
        OneTarget(row, lane);
      } else {
        SeveralTargets(row, lane);
      }
    }
  }

 private:
  __device__ __forceinline__ void OneTarget(int64_t row, int64_t lane) const {
    T score = args.Start();
    for (int64_t tree = lane; tree < args.trees; tree += kWarpThreads) {
      const int32_t leaf = args.Leaf(args.x + row * args.features, args.roots[tree]);
      for (int32_t vote = args.vote_begin[leaf]; vote < args.vote_begin[leaf + 1]; ++vote) {
        score = args.Join(score, args.vote_weight[vote]);
      }
    }
#pragma unroll
    for (int mask = kWarpThreads / 2; mask > 0; mask /= 2) {
      score = args.Join(score, ShuffleXor(score, mask));
    }
    if (lane == 0) args.scores[row] = args.End(score);
  }

  // The scores are joined in the result's own memory, which no other warp touches.
  __device__ __forceinline__ void SeveralTargets(int64_t row, int64_t lane) const {
    T* const scores = args.scores + row * args.targets;
    for (int64_t t = lane; t < args.targets; t += kWarpThreads) scores[t] = args.Start();
    __syncwarp();
    for (int64_t first = 0; first < args.trees; first += kWarpThreads) {
      const int64_t mine = first + lane;
      const bool valid = mine < args.trees;
      const int32_t leaf = valid ? args.Leaf(args.x + row * args.features, args.roots[mine]) : 0;
      const int64_t rest = args.trees - first;
      const int count = static_cast<int>(rest < kWarpThreads ? rest : kWarpThreads);
      for (int other = 0; other < count; ++other) {
        const int32_t found = __shfl_sync(0xffffffffu, leaf, other);
        const int32_t begin = args.vote_begin[found];
        const int32_t end = args.vote_begin[found + 1];
        // The votes of a leaf are for different targets.
        for (int32_t vote = begin + static_cast<int32_t>(lane); vote < end; vote += kWarpThreads) {
          T& score = scores[args.vote_target[vote]];
          score = args.Join(score, args.vote_weight[vote]);
        }
        __syncwarp();
      }
    }
    for (int64_t t = lane; t < args.targets; t += kWarpThreads) scores[t] = args.End(scores[t]);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TREE_ENSEMBLE_GPU_H_
