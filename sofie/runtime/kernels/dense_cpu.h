// Chains of dense layers on the CPU: a tile of rows goes through all layers while it is in the
// second-level cache.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_CPU_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_CPU_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/dense_shape.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/reduce_cpu.h"

namespace sofie::kernels {

// The units are shares of the groups, each with a tile of its own.
template <class Body, size_t K, class Shape>
struct DenseOnCpu {
  static constexpr int64_t kRows = Shape::kRows;
  static constexpr int64_t kInput = Shape::kInput;
  static constexpr int64_t kOutput = Shape::kOutput;
  // A layer's input and output together take at most half a megabyte; more rows would not make
  // products faster.
  static constexpr int64_t kMostGroups = std::min(65536 / Shape::kWidest, 512) / kRows;
  static constexpr size_t kLayerFloats = static_cast<size_t>(kMostGroups) * kRows * Shape::kWidest;

  Body body;
  std::array<int64_t, K> kept;
  std::array<DenseLayer, Shape::kLayers> layers;
  float* memory;
  int64_t groups;
  int64_t shares;

  template <class B>
  static void Launch(LaunchContext& context, const Body& body, const std::array<int64_t, K>& kept,
                     const std::array<DenseLayer, Shape::kLayers>& layers) {
    int64_t products = 0;  // for each row
    for (int i = 0; i < Shape::kLayers; ++i) {
      products += int64_t{Shape::kWidths[i]} * Shape::kWidths[i + 1];
    }
    const int64_t threads = std::max(context.threads(), 1);
    const int64_t groups = Elements(kept);
    const int64_t shares = std::min(groups, threads);
    static_assert(2 * kLayerFloats * sizeof(float) <= kHostWorkspaceBytesPerThread);
    if (context.workspace_bytes() < kHostWorkspaceBytesPerThread * static_cast<size_t>(threads)) {
      throw ArgumentError("Dense: the context's workspace of " +
                          std::to_string(context.workspace_bytes()) +
                          " bytes is too small for its threads");
    }
    auto* const memory = static_cast<float*>(context.workspace());
    LaunchUnits<B>(context, shares, groups * kRows * products,
                   DenseOnCpu{body, kept, layers, memory, groups, shares});
  }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    for (int64_t share = begin; share < end; ++share) {
      float* const tile = memory + 2 * kLayerFloats * share;
      const int64_t first = groups * share / shares;
      const int64_t last = groups * (share + 1) / shares;
      const int64_t tiles = (last - first + kMostGroups - 1) / kMostGroups;
      for (int64_t i = 0; i < tiles; ++i) {
        RunTile(first + (last - first) * i / tiles, first + (last - first) * (i + 1) / tiles, tile,
                tile + kLayerFloats);
      }
    }
  }

 private:
  // Groups [begin, end).
  void RunTile(int64_t begin, int64_t end, float* in, float* out) const {
    const Body local = body;  // A copy that no store in the body can alias.
    Odometer<K> at(kept, begin);
    float* row = in;
    for (int64_t group = begin; group < end; ++group, at.Next()) {
      const std::array<int64_t, K> index = at.index;
      for (int64_t r = 0; r < kRows; ++r, row += kInput) {
#pragma GCC ivdep
        for (int64_t c = 0; c < kInput; ++c) {
          row[c] = LoadAt(local, index, std::array<int64_t, 2>{r, c});
        }
      }
    }
    for (int i = 0; i < Shape::kLayers; ++i) {
      GemmArgs<float> args{.a = in, .b = layers[i].weight, .d = out, .bias = layers[i].bias};
      args.m = (end - begin) * kRows;
      args.k = args.lda = args.ldb = Shape::kWidths[i];
      args.n = args.ldd = Shape::kWidths[i + 1];
      args.trans_b = true;
      args.epilogue = layers[i].relu ? Epilogue::kRelu : Epilogue::kNone;
      GemmInThread(args);
      std::swap(in, out);
    }
    Odometer<K> to(kept, begin);
    for (int64_t group = begin; group < end; ++group, to.Next()) {
      const std::array<int64_t, K> index = to.index;
      float* const first = in + (group - begin) * kRows * kOutput;
      if constexpr (kRows > 1) {
        const typename Body::Combine combine;
        for (int64_t r = 1; r < kRows; ++r) {
          const float* const other = first + r * kOutput;
#pragma GCC ivdep
          for (int64_t c = 0; c < kOutput; ++c) first[c] = combine(first[c], other[c]);
        }
      }
#pragma GCC ivdep
      for (int64_t c = 0; c < kOutput; ++c) {
        StoreAt(local, index, std::array<int64_t, 1>{c}, first[c]);
      }
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_CPU_H_
