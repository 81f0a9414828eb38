// Reductions and row normalisations on a GPU.
#ifndef SOFIE_RUNTIME_KERNELS_REDUCE_GPU_H_
#define SOFIE_RUNTIME_KERNELS_REDUCE_GPU_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/combine.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/policy.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// kLanes threads of a block for each output, as many outputs at once as fit. All threads of a block
// make the same number of steps over the outputs, so that they can meet at barriers.
template <class Body, class I, size_t K, size_t R, class Policy, Finish kFinish>
struct RowsOnGpu {
  using Combine = typename Body::Combine;
  using Accumulator = typename Combine::Accumulator;
  using Count = std::make_unsigned_t<I>;
  static constexpr uint32_t kLanes = Policy::kLanes;
  static constexpr uint32_t kGroups = kBlockThreads / kLanes;
  static constexpr bool kAlongKept = Policy::kAlong == Along::kKept;

  Body body;
  IndexSpace<I, K> kept;
  IndexSpace<I, R> reduced;
  Count outputs;
  Count length;

  static void Launch(LaunchContext& context, const Body& body,
                     const std::array<int64_t, K>& kept_extents,
                     const std::array<int64_t, R>& reduced_extents) {
    const int64_t outputs = Elements(kept_extents);
    LaunchBlocks(
        context, (outputs + kGroups - 1) / kGroups, 32,
        RowsOnGpu{body, IndexSpace<I, K>(kept_extents), IndexSpace<I, R>(reduced_extents),
                  static_cast<Count>(outputs), static_cast<Count>(Elements(reduced_extents))});
  }

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const uint32_t thread = ThreadIndex(acc);
    // Neighbours share an output, or have neighbouring ones.
    const uint32_t group = kAlongKept ? thread % kGroups : thread / kLanes;
    const uint32_t lane = kAlongKept ? thread / kGroups : thread % kLanes;
    const Count step = static_cast<Count>(BlockCount(acc)) * kGroups;
    for (Count first = static_cast<Count>(BlockIndex(acc)) * kGroups; first < outputs;
         first += step) {
      const Count output = first + group;
      const bool valid = output < outputs;
      const Indices<I, K> index = kept.At(static_cast<I>(valid ? output : first));
      Accumulator value = Combine::Identity();
      if (valid) {
        const Combine combine;
#pragma unroll 8
        for (Count r = lane; r < length; r += kLanes) {
          value = combine(value, static_cast<Accumulator>(Load(index, r)));
        }
      }
      value = AllLanes(acc, value);
      if (valid) Complete(index, lane, value);
      // What was exchanged through shared memory has been read before it is written again.
      if constexpr (kLanes > 1 && (kAlongKept || kLanes > kWarpThreads)) {
        ::alpaka::syncBlockThreads(acc);
      }
    }
  }

 private:
  using KeptAxes = std::make_index_sequence<K>;
  using ReducedAxes = std::make_index_sequence<R>;

  template <class Acc>
  __device__ __forceinline__ static Accumulator AllLanes(const Acc& acc, Accumulator value) {
    if constexpr (kLanes == 1) {
      return value;
    } else if constexpr (!kAlongKept) {
      return CombineLanes<static_cast<int>(kLanes), Combine>(acc, value);
    } else {
      const Combine combine;
      const uint32_t thread = ThreadIndex(acc);
      auto& shared = ::alpaka::declareSharedVar<Accumulator[kBlockThreads], 1>(acc);
      shared[thread] = value;
#pragma unroll
      for (uint32_t half = kBlockThreads / 2; half >= kGroups; half /= 2) {
        ::alpaka::syncBlockThreads(acc);
        if (thread < half) shared[thread] = combine(shared[thread], shared[thread + half]);
      }
      ::alpaka::syncBlockThreads(acc);
      return shared[thread % kGroups];
    }
  }

  __device__ __forceinline__ void Complete(const Indices<I, K>& index, uint32_t lane,
                                           const Accumulator& value) const {
    if constexpr (kFinish == Finish::kStore) {
      if (lane == 0) Store(index, value, KeptAxes());
    } else {
      for (Count r = lane; r < length; r += kLanes) {
        StoreElement(index, reduced.At(static_cast<I>(r)), value, KeptAxes(), ReducedAxes());
      }
    }
  }

  __device__ __forceinline__ auto Load(const Indices<I, K>& index, Count r) const {
    return LoadElement(index, reduced.At(static_cast<I>(r)), KeptAxes(), ReducedAxes());
  }
  template <size_t... A, size_t... B>
  __device__ __forceinline__ auto LoadElement(const Indices<I, K>& index, const Indices<I, R>& r,
                                              std::index_sequence<A...>,
                                              std::index_sequence<B...>) const {
    return body.Load(index.value[A]..., r.value[B]...);
  }
  template <size_t... A>
  __device__ __forceinline__ void Store(const Indices<I, K>& index, const Accumulator& value,
                                        std::index_sequence<A...>) const {
    body.Store(index.value[A]..., value);
  }
  template <size_t... A, size_t... B>
  __device__ __forceinline__ void StoreElement(const Indices<I, K>& index, const Indices<I, R>& r,
                                               const Accumulator& value, std::index_sequence<A...>,
                                               std::index_sequence<B...>) const {
    body.Store(index.value[A]..., r.value[B]..., value);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_REDUCE_GPU_H_
