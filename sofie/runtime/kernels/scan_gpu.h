// Running sums and products on a GPU. Lines are cut into chunks where there are too few of them to
// keep the device busy: the chunks' totals are combined first, then scanned, then every chunk
// starts from what is before it.
#ifndef SOFIE_RUNTIME_KERNELS_SCAN_GPU_H_
#define SOFIE_RUNTIME_KERNELS_SCAN_GPU_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/scan.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// The chunks of a scan's lines.
template <class T>
struct ScanChunks {
  ScanArgs<T> args;
  T* totals;  // [line, chunk]; what is before each chunk once they have been scanned
  int64_t lines;
  int64_t chunks;
  int64_t length;  // of a chunk
};

// A thread walks each chunk; neighbours have neighbouring lines.
template <class T, class Combine, bool kTotals>
struct ScanByThread {
  ScanChunks<T> scan;

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const ScanArgs<T>& a = scan.args;
    const Combine combine;
    const int64_t threads = int64_t{BlockCount(acc)} * kBlockThreads;
    for (int64_t item = int64_t{BlockIndex(acc)} * kBlockThreads + ThreadIndex(acc);
         item < scan.lines * scan.chunks; item += threads) {
      const int64_t chunk = item / scan.lines;
      const int64_t line = item - chunk * scan.lines;
      T* const total = scan.totals + line * scan.chunks + chunk;
      T running = kTotals || scan.chunks == 1 ? Combine::Identity() : *total;
      const int64_t begin = chunk * scan.length;
      const int64_t left = a.axis - begin;
      const int64_t end = begin + (left < scan.length ? left : scan.length);
      for (int64_t step = begin; step < end; ++step) {
        const int64_t at = a.At(line, step);
        const T before = running;
        running = combine(running, a.x[at]);
        if constexpr (!kTotals) a.out[at] = a.exclusive ? before : running;
      }
      if constexpr (kTotals) *total = running;
    }
  }
};

// A block walks each chunk, kTile elements at a time, of lines whose elements are contiguous.
template <class T, class Combine, bool kTotals>
struct ScanByBlock {
  static constexpr uint32_t kItems = 8;
  static constexpr uint32_t kTile = kItems * kBlockThreads;
  static constexpr uint32_t kWarps = kBlockThreads / kWarpThreads;

  ScanChunks<T> scan;

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const ScanArgs<T>& a = scan.args;
    const Combine combine;
    auto& shared = ::alpaka::declareSharedVar<T[kWarps], 2>(acc);
    const uint32_t thread = ThreadIndex(acc);
    const uint32_t lane = thread % kWarpThreads;
    for (int64_t item = BlockIndex(acc); item < scan.lines * scan.chunks; item += BlockCount(acc)) {
      const int64_t line = item / scan.chunks;
      const int64_t begin = (item - line * scan.chunks) * scan.length;
      const int64_t left = a.axis - begin;
      const int64_t end = begin + (left < scan.length ? left : scan.length);
      T carry = kTotals || scan.chunks == 1 ? Combine::Identity() : scan.totals[item];
      for (int64_t tile = begin; tile < end; tile += kTile) {
        const int64_t first = tile + thread * kItems;
        T value[kItems];
        T total = Combine::Identity();
#pragma unroll
        for (uint32_t i = 0; i < kItems; ++i) {
          value[i] = first + i < end ? a.x[a.At(line, first + i)] : Combine::Identity();
          total = combine(total, value[i]);
        }
        // What the warp's threads up to this one have, and the warps before it.
        T upto = total;
#pragma unroll
        for (uint32_t step = 1; step < kWarpThreads; step *= 2) {
          const T other = __shfl_up_sync(0xffffffffu, upto, step);
          if (lane >= step) upto = combine(other, upto);
        }
        if (lane == kWarpThreads - 1) shared[thread / kWarpThreads] = upto;
        ::alpaka::syncBlockThreads(acc);
        T before = carry;
        for (uint32_t warp = 0; warp < kWarps; ++warp) {
          if (warp < thread / kWarpThreads) before = combine(before, shared[warp]);
          carry = combine(carry, shared[warp]);
        }
        if constexpr (!kTotals) {
          const T in_warp = __shfl_up_sync(0xffffffffu, upto, 1);
          T running = lane == 0 ? before : combine(before, in_warp);
#pragma unroll
          for (uint32_t i = 0; i < kItems; ++i) {
            const T next = combine(running, value[i]);
            if (first + i < end) a.out[a.At(line, first + i)] = a.exclusive ? running : next;
            running = next;
          }
        }
        ::alpaka::syncBlockThreads(acc);
      }
      if (kTotals && thread == 0) scan.totals[item] = carry;
    }
  }
};

template <class T, class Combine>
void ScanOnGpu(LaunchContext& context, const ScanArgs<T>& args) {
  using Block = ScanByBlock<T, Combine, false>;
  // Lines that are too short for a block, or not contiguous, are for threads.
  constexpr int64_t kShort = 128;
  // As many chunks in all keep a device busy.
  constexpr int64_t kThreadChunks = 65536;
  constexpr int64_t kBlockChunks = 1024;
  ScanChunks<T> scan{args, static_cast<T*>(context.workspace()), args.outer * args.inner, 1,
                     args.axis};
  const bool by_thread = args.inner > 1 || args.axis < kShort;
  const int64_t wanted =
      (by_thread ? kThreadChunks : kBlockChunks) / std::max<int64_t>(scan.lines, 1);
  const int64_t shortest = by_thread ? kShort : int64_t{Block::kTile};
  if (wanted > 4 && args.axis > shortest) {
    const int64_t length = std::max(shortest, (args.axis + wanted - 1) / wanted);
    scan.length = (length + shortest - 1) / shortest * shortest;
    scan.chunks = (args.axis + scan.length - 1) / scan.length;
  }
  const int64_t items = scan.lines * scan.chunks;
  if (scan.chunks > 1 && context.workspace_bytes() < static_cast<size_t>(items) * sizeof(T)) {
    throw ArgumentError("Scan: the context's workspace of " +
                        std::to_string(context.workspace_bytes()) + " bytes is too small");
  }
  const int64_t blocks = by_thread ? (items + kBlockThreads - 1) / kBlockThreads : items;
  if (scan.chunks > 1) {
    if (by_thread) {
      LaunchBlocks(context, blocks, 16, ScanByThread<T, Combine, true>{scan});
    } else {
      LaunchBlocks(context, blocks, 16, ScanByBlock<T, Combine, true>{scan});
    }
    ScanArgs<T> totals{scan.totals, scan.totals, scan.lines, scan.chunks};
    totals.exclusive = true;
    const ScanChunks<T> all{totals, nullptr, scan.lines, 1, scan.chunks};
    LaunchBlocks(context, scan.lines, 16, Block{all});
  }
  if (by_thread) {
    LaunchBlocks(context, blocks, 16, ScanByThread<T, Combine, false>{scan});
  } else {
    LaunchBlocks(context, blocks, 16, Block{scan});
  }
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_SCAN_GPU_H_
