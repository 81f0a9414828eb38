// What the threads of a GPU group exchange.
#ifndef SOFIE_RUNTIME_KERNELS_WARP_H_
#define SOFIE_RUNTIME_KERNELS_WARP_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/launch.h"

namespace sofie::kernels {

inline constexpr uint32_t kWarpThreads = 32;

// The value that the thread whose lane differs by `mask` has. All threads of the warp take part.
// alpaka has shuffles of int and float only, and none by exclusive or.
template <class T>
__device__ __forceinline__ T ShuffleXor(const T& value, int mask) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr int kWords = (sizeof(T) + 3) / 4;
  uint32_t words[kWords] = {};
  std::memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(0xffffffffu, words[i], mask);
  T result;
  std::memcpy(&result, words, sizeof(T));
  return result;
}

// 2 to the power of x, within 2^-22 of it; 0 where that is below the normal numbers.
__device__ __forceinline__ float PowerOf2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// Combines the values of each `kLanes` neighbouring threads of the block; all of them get the
// result. All threads of the block take part. Not to be called twice without a barrier in between
// if kLanes exceeds a warp.
template <int kLanes, class Combine, class Acc>
__device__ __forceinline__ typename Combine::Accumulator CombineLanes(
    const Acc& acc, typename Combine::Accumulator value) {
  using Accumulator = typename Combine::Accumulator;
  const Combine combine;
  constexpr int kInWarp = kLanes < static_cast<int>(kWarpThreads) ? kLanes : kWarpThreads;
#pragma unroll
  for (int mask = kInWarp / 2; mask > 0; mask /= 2) {
    value = combine(value, ShuffleXor(value, mask));
  }
  if constexpr (kLanes > static_cast<int>(kWarpThreads)) {
    constexpr int kWarps = kBlockThreads / kWarpThreads;
    constexpr int kWarpsOfGroup = kLanes / kWarpThreads;
    auto& shared = ::alpaka::declareSharedVar<Accumulator[kWarps], 0>(acc);
    const uint32_t thread = ThreadIndex(acc);
    const uint32_t warp = thread / kWarpThreads;
    if (thread % kWarpThreads == 0) shared[warp] = value;
    ::alpaka::syncBlockThreads(acc);
    const uint32_t first = warp / kWarpsOfGroup * kWarpsOfGroup;
    value = shared[first];
#pragma unroll
    for (int i = 1; i < kWarpsOfGroup; ++i) value = combine(value, shared[first + i]);
  }
  return value;
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_WARP_H_
