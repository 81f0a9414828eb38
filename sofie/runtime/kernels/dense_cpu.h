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

namespace sofie::kernels {

// Writes a row of kWidth elements of a body to memory, loop by loop, and returns its end; `at` are
// the indices outside of the loop over axis kAxis of the row.
template <int64_t kWidth, size_t kAxis = 0, class Body, class... At>
float* LoadRow(const Body& body, float* row, At... at) {
  if constexpr (kAxis + 1 < ChannelAxes<Body>()) {
    for (int64_t i = 0; i < Body::Channels::kExtents[kAxis]; ++i) {
      row = LoadRow<kWidth / Body::Channels::kExtents[kAxis], kAxis + 1>(body, row, at..., i);
    }
    return row;
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < kWidth; ++i) row[i] = body.Load(at..., i);
    return row + kWidth;
  }
}

// A layer of few outputs, which stay in registers. Measured on Zen 4 with 512 rows beside OpenBLAS,
// which copies its operands first: 9 inputs, 8 outputs 0.9 µs and 2.2 µs; 256, 8: 23 and 36; 16,
// 16: 2.8 and 4.1; 72, 16: equal.
template <int kIn, int kOut>
struct NarrowLayer {
  static constexpr bool kIsFaster = kOut == 8 || (kOut == 16 && kIn <= 32);
  static constexpr int kLanes = 8;
  static constexpr int kVectors = kOut / kLanes;
  // Such that there are eight sums at a time: enough to hide the latency of an addition.
  static constexpr int kRowsAtOnce = std::max(8 / kVectors, 1);
  using Vector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float))]] = float;

  static void Run(const DenseLayer& layer, int64_t rows, const float* in, float* out) {
    Vector weight[kIn][kVectors];
    for (int o = 0; o < kOut; ++o) {
      for (int i = 0; i < kIn; ++i) {
        weight[i][o / kLanes][o % kLanes] = layer.weight[o * kIn + i];
      }
    }
    Vector bias[kVectors] = {};
    if (layer.bias != nullptr) {
      for (int o = 0; o < kOut; ++o) bias[o / kLanes][o % kLanes] = layer.bias[o];
    }
    int64_t row = 0;
    for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
      Rows<kRowsAtOnce>(weight, bias, layer.relu, in + row * kIn, out + row * kOut);
    }
    for (; row < rows; ++row) Rows<1>(weight, bias, layer.relu, in + row * kIn, out + row * kOut);
  }

 private:
  template <int kRows>
  static void Rows(const Vector (&weight)[kIn][kVectors], const Vector (&bias)[kVectors], bool relu,
                   const float* in, float* out) {
    Vector sum[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[r][v] = bias[v];
    }
    for (int i = 0; i < kIn; ++i) {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sum[r][v] += in[r * kIn + i] * weight[i][v];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const Vector value = sum[r][v];
        // As kernels::Relu: NaN stays.
        const Vector result = relu ? (value < 0 ? Vector{} : value) : value;
        *reinterpret_cast<Vector*>(out + r * kOut + v * kLanes) = result;
      }
    }
  }
};

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
    float* row = in;
    ForEachPoint(kept, begin, end, [&](auto... index) {
      for (int64_t r = 0; r < kRows; ++r) row = LoadRow<kInput>(local, row, index..., r);
    });
    [&]<int... kLayer>(std::integer_sequence<int, kLayer...>) {
      ((RunLayer<kLayer>((end - begin) * kRows, in, out), std::swap(in, out)), ...);
    }(std::make_integer_sequence<int, Shape::kLayers>());
    float* group = in;
    ForEachPoint(kept, begin, end, [&](auto... index) {
      if constexpr (kRows > 1) {
        const typename Body::Combine combine;
        for (int64_t r = 1; r < kRows; ++r) {
          const float* const other = group + r * kOutput;
#pragma GCC ivdep
          for (int64_t c = 0; c < kOutput; ++c) group[c] = combine(group[c], other[c]);
        }
      }
#pragma GCC ivdep
      for (int64_t c = 0; c < kOutput; ++c) local.Store(index..., c, group[c]);
      group += kRows * kOutput;
    });
  }

  template <int kLayer>
  void RunLayer(int64_t rows, const float* in, float* out) const {
    const DenseLayer& layer = layers[kLayer];
    constexpr int kIn = Shape::kWidths[kLayer];
    constexpr int kOut = Shape::kWidths[kLayer + 1];
    using Narrow = NarrowLayer<kIn, kOut>;
    if constexpr (Narrow::kIsFaster) {
      Narrow::Run(layer, rows, in, out);
    } else {
      GemmArgs<float> args{.a = in, .b = layer.weight, .d = out, .bias = layer.bias};
      args.m = rows;
      args.k = args.lda = args.ldb = kIn;
      args.n = args.ldd = kOut;
      args.trans_b = true;
      args.epilogue = layer.relu ? Epilogue::kRelu : Epilogue::kNone;
      GemmInThread(args);
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_CPU_H_
