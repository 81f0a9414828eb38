// Updates of elements at places that data decide, several of which may be one place.
#ifndef SOFIE_RUNTIME_KERNELS_SCATTER_H_
#define SOFIE_RUNTIME_KERNELS_SCATTER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/combine.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#if defined(__CUDACC__)
#include "sofie/runtime/kernels/warp.h"
#endif

namespace sofie::kernels {

// The combine of an update that takes the element's place.
template <class T>
struct Replace {
  using Accumulator = T;
  SOFIE_MATH_FN T operator()(T /*old*/, T update) const { return update; }
};

// What a body's At() gives: where an update goes, and what it is. It is joined to the element in
// the accumulator's type.
template <class T>
struct Update {
  T* at;
  T value;
};

#if !defined(__CUDACC__)

// The units are chunks of neighbouring lines: no two of them write one element. The updates of a
// line are made in order.
template <class Body, size_t L, size_t U>
struct ScatterOnCpu {
  static constexpr int64_t kChunk = 64;

  Body body;
  std::array<int64_t, L> lines;
  std::array<int64_t, U> updates;

  int64_t units() const { return (Elements(lines) + kChunk - 1) / kChunk; }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const Body local = body;  // A copy that no store in the body can alias.
    const int64_t first = begin * kChunk;
    const int64_t last = std::min(end * kChunk, Elements(lines));
    const int64_t count = Elements(updates);
    // A chunk at a time, so that its elements stay in the cache.
    for (int64_t chunk = first; chunk < last; chunk += kChunk) {
      Odometer<U> update(updates, 0);
      for (int64_t u = 0; u < count; ++u, update.Next()) {
        Odometer<L> line(lines, chunk);
        for (int64_t i = chunk; i < std::min(chunk + kChunk, last); ++i, line.Next()) {
          Apply(local, line.index, update.index, std::make_index_sequence<L>(),
                std::make_index_sequence<U>());
        }
      }
    }
  }

 private:
  template <size_t... A, size_t... B>
  static void Apply(const Body& body, const std::array<int64_t, L>& line,
                    const std::array<int64_t, U>& update, std::index_sequence<A...>,
                    std::index_sequence<B...>) {
    using Combine = typename Body::Combine;
    using Number = typename Combine::Accumulator;
    const auto [at, value] = body.At(line[A]..., update[B]...);
    using T = std::remove_reference_t<decltype(*at)>;
    *at = static_cast<T>(Combine()(static_cast<Number>(*at), static_cast<Number>(value)));
  }
};

#else  // defined(__CUDACC__)

// *at = combine(*at, value), whatever other threads do to the element or its neighbours.
template <class Combine, class T>
__device__ __forceinline__ void CombineAtomically(T* at, T value) {
  using Number = typename Combine::Accumulator;
  if constexpr (std::is_same_v<Combine, Replace<Number> >) {
    *at = value;
  } else if constexpr (std::is_same_v<Combine, Sum<T> > &&
                       (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                        std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t>)) {
    atomicAdd(at, value);
  } else {
    // By exchanging the word that the element is, or lies in, until nobody came between.
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;
    const uintptr_t address = reinterpret_cast<uintptr_t>(at);
    const unsigned int shift = static_cast<unsigned int>(address % sizeof(Word)) * 8;
    Word* const word = reinterpret_cast<Word*>(address - address % sizeof(Word));
    using Bits = std::conditional_t<
        sizeof(T) == 8, uint64_t,
        std::conditional_t<sizeof(T) == 4, uint32_t,
                           std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t> > >;
    Word seen = *static_cast<volatile Word*>(word);
    for (;;) {
      const Bits old_bits = static_cast<Bits>(seen >> shift);
      T element;
      memcpy(&element, &old_bits, sizeof(T));
      element = static_cast<T>(Combine()(static_cast<Number>(element), static_cast<Number>(value)));
      Bits new_bits;
      memcpy(&new_bits, &element, sizeof(T));
      const Word mask = static_cast<Word>(static_cast<Bits>(~Bits{0})) << shift;
      const Word wanted = (seen & ~mask) | (static_cast<Word>(new_bits) << shift);
      const Word before = atomicCAS(word, seen, wanted);
      if (before == seen) return;
      seen = before;
    }
  }
}

// A thread an update, all updates at once: sums of floating-point numbers depend on who comes
// first.
template <class Body, class I, size_t L, size_t U>
struct ScatterOnGpu {
  using Count = std::make_unsigned_t<I>;

  Body body;
  IndexSpace<I, U + L> points;
  Count count;

  static void Launch(LaunchContext& context, const Body& body, const std::array<int64_t, L>& lines,
                     const std::array<int64_t, U>& updates) {
    // Lines innermost: neighbouring threads go to neighbouring elements.
    std::array<int64_t, U + L> extents;
    std::copy_n(updates.begin(), U, extents.begin());
    std::copy_n(lines.begin(), L, extents.begin() + U);
    const int64_t count = Elements(extents);
    LaunchBlocks(context, (count + kBlockThreads - 1) / kBlockThreads, 32,
                 ScatterOnGpu{body, IndexSpace<I, U + L>(extents), static_cast<Count>(count)});
  }

  template <class Acc>
  __device__ __forceinline__ void operator()(const Acc& acc) const {
    const Count step = static_cast<Count>(BlockCount(acc)) * kBlockThreads;
    for (Count i = static_cast<Count>(BlockIndex(acc)) * kBlockThreads + ThreadIndex(acc);
         i < count; i += step) {
      const Indices<I, U + L> index = points.At(static_cast<I>(i));
      Apply(index, std::make_index_sequence<L>(), std::make_index_sequence<U>());
    }
  }

 private:
  template <size_t... A, size_t... B>
  __device__ __forceinline__ void Apply(const Indices<I, U + L>& index, std::index_sequence<A...>,
                                        std::index_sequence<B...>) const {
    const auto update = body.At(index.value[U + A]..., index.value[B]...);
    CombineAtomically<typename Body::Combine>(update.at, update.value);
  }
};

#endif  // defined(__CUDACC__)

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_SCATTER_H_
