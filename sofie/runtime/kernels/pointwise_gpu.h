// One body call per point of the iteration space, on a GPU.
#ifndef SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_
#define SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// A body in two halves, Load and Store.
template <class Body>
concept SplitBody = requires { typename Body::Value; };

// A row, along the last axis, is cut into tiles; each goes to as many neighbouring threads as fit,
// up to a warp, and they step over its columns. So the indices before the last are found once for
// several points, and what the body makes of them is computed once.
template <class Body, class I, size_t R>
struct PointwiseOnGpu {
  // Counts beyond the last point without overflow.
  using Count = std::make_unsigned_t<I>;
  // Columns that each thread takes of a tile where there is work enough for all threads.
  static constexpr uint32_t kColumns = 4;
  // Blocks for each multiprocessor, at most.
  static constexpr int64_t kBlocks = 32;
  static constexpr size_t kOuter = R == 0 ? 0 : R - 1;

  Body body;
  IndexSpace<I, 2> items;       // row, tile
  IndexSpace<I, kOuter> outer;  // the indices of a row
  Count item_count;
  Count columns;       // of a row
  uint32_t log_lanes;  // threads of a tile
  uint32_t tile;       // columns of a tile

  static void Launch(LaunchContext& context, const Body& body,
                     const std::array<int64_t, R>& extents, int64_t points) {
    const int64_t columns = R == 0 ? 1 : extents[R == 0 ? 0 : R - 1];
    const int64_t rows = points / columns;
    std::array<int64_t, kOuter> outer;
    std::copy_n(extents.begin(), kOuter, outer.begin());
    const int64_t lanes = std::min<int64_t>(
        kWarpThreads, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(columns))));
    const int64_t threads_at_once =
        int64_t{LimitsOf(context).multiprocessors} * kThreadsPerMultiprocessor;
    const int64_t per_thread = points > 2 * threads_at_once ? kColumns : 1;
    const int64_t tile = lanes * per_thread;
    const int64_t tiles = (columns + tile - 1) / tile;
    const int64_t items = rows * tiles;
    LaunchBlocks(
        context, (items * lanes + kBlockThreads - 1) / kBlockThreads, kBlocks,
        PointwiseOnGpu{
            .body = body,
            .items = IndexSpace<I, 2>({rows, tiles}),
            .outer = IndexSpace<I, kOuter>(outer),
            .item_count = static_cast<Count>(items),
            .columns = static_cast<Count>(columns),
            .log_lanes = static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(lanes))),
            .tile = static_cast<uint32_t>(tile),
        });
  }

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const uint32_t lanes = 1u << log_lanes;
    const uint32_t lane = ThreadIndex(acc) & (lanes - 1);
    const uint32_t items_per_block = kBlockThreads >> log_lanes;
    const Count step = static_cast<Count>(BlockCount(acc)) * items_per_block;
    for (Count item = static_cast<Count>(BlockIndex(acc)) * items_per_block +
                      (ThreadIndex(acc) >> log_lanes);
         item < item_count; item += step) {
      const Indices<I, 2> row_and_tile = items.At(static_cast<I>(item));
      const Indices<I, kOuter> row = outer.At(row_and_tile.value[0]);
      const Count begin = static_cast<Count>(row_and_tile.value[1]) * tile;
      const Count end = columns - begin < tile ? columns : begin + tile;
      Row(row, begin + lane, end, lanes, std::make_index_sequence<kOuter>());
    }
  }

 private:
  static constexpr int64_t kThreadsPerMultiprocessor = 2048;

  // Points begin, begin + lanes, … below end of a row.
  template <size_t... A>
  __device__ __forceinline__ void Row([[maybe_unused]] const Indices<I, kOuter>& row, Count begin,
                                      Count end, uint32_t lanes, std::index_sequence<A...>) const {
    if constexpr (R == 0) {
      if (begin < end) Point();
    } else if constexpr (SplitBody<Body>) {
      if (begin + (kColumns - 1) * lanes < end) {
        typename Body::Value value[kColumns];
#pragma unroll
        for (uint32_t i = 0; i < kColumns; ++i) {
          value[i] = body.Load(row.value[A]..., static_cast<I>(begin + i * lanes));
        }
#pragma unroll
        for (uint32_t i = 0; i < kColumns; ++i) {
          body.Store(row.value[A]..., static_cast<I>(begin + i * lanes), value[i]);
        }
        begin += kColumns * lanes;
      }
      for (Count i = begin; i < end; i += lanes) Point(row.value[A]..., static_cast<I>(i));
    } else {
      for (Count i = begin; i < end; i += lanes) Point(row.value[A]..., static_cast<I>(i));
    }
  }

  template <class... At>
  __device__ __forceinline__ void Point(At... at) const {
    if constexpr (SplitBody<Body>) {
      body.Store(at..., body.Load(at...));
    } else {
      body(at...);
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_
