// One body call per point of the iteration space, on the CPU.
#ifndef SOFIE_RUNTIME_KERNELS_POINTWISE_CPU_H_
#define SOFIE_RUNTIME_KERNELS_POINTWISE_CPU_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sofie/runtime/kernels/index.h"

namespace sofie::kernels {

// The units are points, so that a long single row is shared between threads too. The loop over the
// last axis is one that the compiler vectorises: bodies have no dependence between points.
template <class Body, size_t R>
struct PointwiseOnCpu {
  Body body;
  std::array<int64_t, R> extents;

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const Body local = body;  // A copy that no store in the body can alias.
    if constexpr (R == 0) {
      if (begin < end) local();
    } else if constexpr (R == 1) {
      Row(local, {}, begin, end);
    } else {
      const int64_t columns = extents[R - 1];
      const int64_t rows = extents[R - 2];
      Odometer<R> at(extents, begin);
      int64_t left = end - begin;
      while (left > 0) {
        const int64_t column = at.index[R - 1];
        if (column == 0 && left >= columns) {
          const int64_t first = at.index[R - 2];
          const int64_t last = std::min(rows, first + left / columns);
          Outer index = OuterOf(at);
          for (int64_t row = first; row < last; ++row) {
            index[R - 2] = row;
            Row(local, index, 0, columns);
          }
          left -= (last - first) * columns;
          at.index[R - 2] = last - 1;
        } else {
          const int64_t stop = std::min(columns, column + left);
          Row(local, OuterOf(at), column, stop);
          left -= stop - column;
        }
        at.index[R - 1] = columns - 1;
        at.Next();
      }
    }
  }

 private:
  using Outer = std::array<int64_t, R == 0 ? 0 : R - 1>;

  static Outer OuterOf(const Odometer<R>& at) {
    Outer outer;
    std::copy_n(at.index.begin(), R - 1, outer.begin());
    return outer;
  }

  static void Row(const Body& body, const Outer outer, int64_t begin, int64_t end) {
    [&]<size_t... A>(std::index_sequence<A...>) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) body(outer[A]..., i);
    }(std::make_index_sequence<R - 1>());
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_POINTWISE_CPU_H_
