// One body call per point of the iteration space, on a GPU.
#ifndef SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_
#define SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"

namespace sofie::kernels {

// A body in two halves, Load and Store.
template <class Body>
concept SplitBody = requires { typename Body::Value; };

// Neighbouring threads take neighbouring points; the grid steps over the space.
template <class Body, class I, size_t R>
struct PointwiseOnGpu {
  // Counts beyond the last point without overflow.
  using Count = std::make_unsigned_t<I>;
  // Loads in flight for each thread, where the body lets them be.
  static constexpr int kUnroll = 4;

  Body body;
  IndexSpace<I, R> space;
  Count points;

  static void Launch(LaunchContext& context, const Body& body,
                     const std::array<int64_t, R>& extents, int64_t points) {
    LaunchBlocks(context, (points + kBlockThreads - 1) / kBlockThreads, 32,
                 PointwiseOnGpu{body, IndexSpace<I, R>(extents), static_cast<Count>(points)});
  }

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const Count stride = static_cast<Count>(BlockCount(acc)) * kBlockThreads;
    Count point = static_cast<Count>(BlockIndex(acc)) * kBlockThreads + ThreadIndex(acc);
    if constexpr (SplitBody<Body>) {
      for (; point + (kUnroll - 1) * stride < points; point += kUnroll * stride) {
        typename Body::Value value[kUnroll];
        Indices<I, R> index[kUnroll];
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
          index[i] = space.At(static_cast<I>(point + i * stride));
          value[i] = Spread(index[i], [&](auto... at) { return body.Load(at...); });
        }
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
          Spread(index[i], [&](auto... at) { body.Store(at..., value[i]); });
        }
      }
    }
    for (; point < points; point += stride) {
      Spread(space.At(static_cast<I>(point)), [&](auto... at) { Call(at...); });
    }
  }

 private:
  template <class... At>
  __device__ __forceinline__ void Call(At... at) const {
    if constexpr (SplitBody<Body>) {
      body.Store(at..., body.Load(at...));
    } else {
      body(at...);
    }
  }

  template <class Function>
  __device__ static __forceinline__ auto Spread(const Indices<I, R>& index,
                                                const Function& function) {
    return SpreadWith(index, function, std::make_index_sequence<R>());
  }
  template <class Function, size_t... A>
  __device__ static __forceinline__ auto SpreadWith(const Indices<I, R>& index,
                                                    const Function& function,
                                                    std::index_sequence<A...>) {
    return function(index.value[A]...);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_POINTWISE_GPU_H_
