// TopK on a GPU: a warp for each row where k is small, else every element's rank by counting.
#ifndef SOFIE_RUNTIME_KERNELS_TOPK_GPU_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_GPU_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/topk_key.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// An element in selection order: by key, then by the complement of its index. {0, 0} comes after
// every element, since no index is 2^32 - 1.
template <class Key>
struct TopKEntry {
  Key key;
  uint32_t rest;

  __device__ __forceinline__ bool operator>(const TopKEntry& other) const {
    return key != other.key ? key > other.key : rest > other.rest;
  }
};

// The largest of the warp's numbers.
__device__ __forceinline__ uint32_t WarpMax(uint32_t value) {
  return __reduce_max_sync(0xffffffffu, value);
}
__device__ __forceinline__ uint64_t WarpMax(uint64_t value) {
  const uint32_t high = static_cast<uint32_t>(value >> 32);
  const uint32_t top = WarpMax(high);
  const uint32_t low = WarpMax(high == top ? static_cast<uint32_t>(value) : 0u);
  return (static_cast<uint64_t>(top) << 32) | low;
}

// Up to 32 results; lane r keeps the one of rank r. Rows that fit are held in registers, and the
// best is taken out k times; longer ones stream through a sorted list.
template <class T, class Body, class I, size_t K>
struct TopKOnGpuByWarp {
  using Key = typename TopKKey<T>::Type;
  using Entry = TopKEntry<Key>;
  using Row = TopKRow<T, Body, I, K>;
  static constexpr int64_t kMostResults = kWarpThreads;

  Body body;
  IndexSpace<I, K> kept;
  TopKArgs<T> args;
  int64_t rows;

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    constexpr uint32_t kWarps = kBlockThreads / kWarpThreads;
    const uint32_t lane = ThreadIndex(acc) % kWarpThreads;
    const int64_t step = static_cast<int64_t>(BlockCount(acc)) * kWarps;
    for (int64_t row =
             static_cast<int64_t>(BlockIndex(acc)) * kWarps + ThreadIndex(acc) / kWarpThreads;
         row < rows; row += step) {
      const Row x(args, body, kept.At(static_cast<I>(row)), row);
      const uint32_t axis = static_cast<uint32_t>(args.axis);
      uint32_t index = 0;
      if (axis <= 4 * kWarpThreads) {
        index = Select<4>(x, axis, lane);
      } else if (axis <= 8 * kWarpThreads) {
        index = Select<8>(x, axis, lane);
      } else if (sizeof(Key) == 4 && axis <= 32 * kWarpThreads) {
        index = SelectOfMany<sizeof(Key) == 4 ? 32 : 1>(x, axis, lane);
      } else {
        index = Stream(x, axis, lane);
      }
      if (lane < args.k) {
        const int64_t place = x.output + lane * args.inner;
        if (args.values != nullptr) args.values[place] = x[index];
        if (args.indices != nullptr) args.indices[place] = index;
      }
    }
  }

 private:
  // A lane holds every 32nd element of the row. Returns the index of the element whose rank is the
  // lane's.
  template <int kRegisters>
  __device__ __forceinline__ uint32_t Select(const Row& x, uint32_t axis, uint32_t lane) const {
    Entry entry[kRegisters];
#pragma unroll
    for (int j = 0; j < kRegisters; ++j) {
      const uint32_t index = lane + j * kWarpThreads;
      entry[j] = {0, 0};
      if (index < axis) entry[j] = {TopKKey<T>::Of(x[index], args.largest), ~index};
    }
    // Each lane's elements in selection order: neighbours that are not change places.
#pragma unroll
    for (int round = 0; round < kRegisters; ++round) {
#pragma unroll
      for (int j = round % 2; j + 1 < kRegisters; j += 2) {
        const Entry before = entry[j];
        const bool swaps = entry[j + 1] > before;
        if (swaps) entry[j] = entry[j + 1];
        if (swaps) entry[j + 1] = before;
      }
    }
    uint32_t mine = 0;
    for (uint32_t rank = 0; rank < args.k; ++rank) {
      const Key top = WarpMax(entry[0].key);
      const uint32_t rest = WarpMax(entry[0].key == top ? entry[0].rest : 0u);
      if (rank == lane) mine = ~rest;
      const bool taken = entry[0].rest == rest;
#pragma unroll
      for (int j = 0; j + 1 < kRegisters; ++j) {
        if (taken) entry[j] = entry[j + 1];
      }
      if (taken) entry[kRegisters - 1] = {0, 0};
    }
    return mine;
  }

  // The same for more registers than it pays to sort: element lane + 32 j is in register j.
  template <int kRegisters>
  __device__ __forceinline__ uint32_t SelectOfMany(const Row& x, uint32_t axis,
                                                   uint32_t lane) const {
    Key key[kRegisters];
    uint32_t live = 0;  // bit j: register j holds an element not yet taken
#pragma unroll
    for (int j = 0; j < kRegisters; ++j) {
      const uint32_t index = lane + j * kWarpThreads;
      key[j] = 0;
      if (index < axis) {
        key[j] = TopKKey<T>::Of(x[index], args.largest);
        live |= 1u << j;
      }
    }
    Entry best = Best(key, live, lane);
    uint32_t mine = 0;
    for (uint32_t rank = 0; rank < args.k; ++rank) {
      const Key top = WarpMax(best.key);
      const uint32_t rest = WarpMax(best.key == top ? best.rest : 0u);
      const uint32_t index = ~rest;
      if (rank == lane) mine = index;
      if (index % kWarpThreads == lane) {
        live &= ~(1u << (index / kWarpThreads));
        best = Best(key, live, lane);
      }
    }
    return mine;
  }

  // The first of the lane's elements that are left.
  template <int kRegisters>
  __device__ __forceinline__ static Entry Best(const Key (&key)[kRegisters], uint32_t live,
                                               uint32_t lane) {
    Entry best{0, 0};
#pragma unroll
    for (int j = 0; j < kRegisters; ++j) {
      // Equal keys stay with the lower index, which came first.
      if ((live >> j & 1u) != 0 && (best.rest == 0 || key[j] > best.key)) {
        best = {key[j], ~(lane + j * kWarpThreads)};
      }
    }
    return best;
  }

  // The list of the best so far is sorted over the lanes; 32 elements at a time are compared with
  // its k-th, and those above it inserted one by one.
  __device__ __forceinline__ uint32_t Stream(const Row& x, uint32_t axis, uint32_t lane) const {
    const uint32_t last = static_cast<uint32_t>(args.k) - 1;
    Entry listed{0, 0};
    Entry bar{0, 0};
    for (uint32_t first = 0; first < axis; first += kWarpThreads) {
      const uint32_t index = first + lane;
      Entry entry{0, 0};
      if (index < axis) entry = {TopKKey<T>::Of(x[index], args.largest), ~index};
      uint32_t waiting = __ballot_sync(0xffffffffu, entry > bar);
      while (waiting != 0) {
        const int source = __ffs(waiting) - 1;
        const Entry next{__shfl_sync(0xffffffffu, entry.key, source),
                         __shfl_sync(0xffffffffu, entry.rest, source)};
        const uint32_t place = __popc(__ballot_sync(0xffffffffu, listed > next));
        const Entry before{__shfl_up_sync(0xffffffffu, listed.key, 1),
                           __shfl_up_sync(0xffffffffu, listed.rest, 1)};
        if (lane == place) {
          listed = next;
        } else if (lane > place) {
          listed = before;
        }
        bar = {__shfl_sync(0xffffffffu, listed.key, last),
               __shfl_sync(0xffffffffu, listed.rest, last)};
        waiting &= waiting - 1;
        waiting &= __ballot_sync(0xffffffffu, entry > bar);
      }
    }
    return ~listed.rest;
  }
};

// Any number of results: an element's rank is the number of elements before it, and says where it
// goes. Work grows with the square of the axis, all of it in parallel and without scratch memory.
template <class T, class Body, class I, size_t K>
struct TopKOnGpuByRank {
  using Key = typename TopKKey<T>::Type;

  Body body;
  IndexSpace<I, K> kept;
  TopKArgs<T> args;
  int64_t rows;
  int64_t blocks_per_row;

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    auto& tile = ::alpaka::declareSharedVar<Key[kBlockThreads], 2>(acc);
    const uint32_t thread = ThreadIndex(acc);
    for (int64_t item = BlockIndex(acc); item < rows * blocks_per_row; item += BlockCount(acc)) {
      const int64_t row = item / blocks_per_row;
      const int64_t first = (item - row * blocks_per_row) * kBlockThreads;
      const TopKRow<T, Body, I, K> x(args, body, kept.At(static_cast<I>(row)), row);
      const int64_t mine = first + thread;
      const bool valid = mine < args.axis;
      const T value = valid ? x[mine] : T{0};
      const Key key = TopKKey<T>::Of(value, args.largest);
      int64_t rank = 0;
      for (int64_t begin = 0; begin < args.axis; begin += kBlockThreads) {
        ::alpaka::syncBlockThreads(acc);
        const int64_t other = begin + thread;
        if (other < args.axis) {
          tile[thread] = TopKKey<T>::Of(x[other], args.largest);
        }
        ::alpaka::syncBlockThreads(acc);
        const int64_t left = args.axis - begin;
        const uint32_t count = left < kBlockThreads ? static_cast<uint32_t>(left) : kBlockThreads;
        // Equal keys before this element's index come before it.
        const int64_t before = mine - begin;
        uint32_t smaller = 0;
        for (uint32_t j = 0; j < count; ++j) {
          smaller += tile[j] > key || (tile[j] == key && j < before) ? 1u : 0u;
        }
        rank += smaller;
      }
      if (valid && rank < args.k) {
        const int64_t place = x.output + rank * args.inner;
        if (args.values != nullptr) args.values[place] = value;
        if (args.indices != nullptr) args.indices[place] = mine;
      }
    }
  }
};

// The arguments have been checked, and there is something to do.
template <class T, class Body, class I, size_t K>
struct TopKOnGpu {
  static void Launch(LaunchContext& context, const Body& body, const std::array<int64_t, K>& kept,
                     const TopKArgs<T>& args) {
    using ByWarp = TopKOnGpuByWarp<T, Body, I, K>;
    const IndexSpace<I, K> space(kept);
    const int64_t rows = Elements(kept);
    if (args.k <= ByWarp::kMostResults && args.axis < std::numeric_limits<int32_t>::max()) {
      constexpr int64_t kWarps = kBlockThreads / kWarpThreads;
      LaunchBlocks(context, (rows + kWarps - 1) / kWarps, 32, ByWarp{body, space, args, rows});
      return;
    }
    const int64_t blocks_per_row = (args.axis + kBlockThreads - 1) / kBlockThreads;
    LaunchBlocks(context, rows * blocks_per_row, 32,
                 TopKOnGpuByRank<T, Body, I, K>{body, space, args, rows, blocks_per_row});
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TOPK_GPU_H_
