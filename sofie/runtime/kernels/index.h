// Linear indices to logical ones, and calls of bodies with them.
#ifndef SOFIE_RUNTIME_KERNELS_INDEX_H_
#define SOFIE_RUNTIME_KERNELS_INDEX_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/fast_div.h"

namespace sofie::kernels {

// The indices of one point, outermost first. Valid for rank 0 too.
template <class I, size_t R>
struct Indices {
  I value[R == 0 ? 1 : R] = {};
};

// The product of the extents: 1 for rank 0.
template <size_t R>
int64_t Elements(const std::array<int64_t, R>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

// What a kernel needs to turn a linear index in [0, product of extents) into indices. With 32-bit
// indices there are fewer than 2^31 points and the divisions are precomputed.
template <class I, size_t R>
class IndexSpace {
  static constexpr bool kFast = sizeof(I) == sizeof(uint32_t);
  using Divisor = std::conditional_t<kFast, FastDiv, I>;

 public:
  explicit IndexSpace(const std::array<int64_t, R>& extents) {
    std::transform(extents.begin(), extents.end(), divisor_, [](int64_t extent) {
      // An empty axis has no points: nobody will ask for one.
      return Divisor(static_cast<std::conditional_t<kFast, uint32_t, I>>(extent == 0 ? 1 : extent));
    });
  }

  ALPAKA_FN_HOST_ACC Indices<I, R> At(I linear) const {
    Indices<I, R> indices;
    if constexpr (R == 1) {
      indices.value[0] = linear;
    } else if constexpr (R > 1) {
      I rest = linear;
      ALPAKA_UNROLL()
      for (size_t axis = R - 1; axis > 0; --axis) {
        if constexpr (kFast) {
          const uint32_t quotient = divisor_[axis].Divide(static_cast<uint32_t>(rest));
          indices.value[axis] =
              static_cast<I>(static_cast<uint32_t>(rest) - quotient * divisor_[axis].divisor());
          rest = static_cast<I>(quotient);
        } else {
          const I quotient = rest / divisor_[axis];
          indices.value[axis] = rest - quotient * divisor_[axis];
          rest = quotient;
        }
      }
      indices.value[0] = rest;
    }
    return indices;
  }

 private:
  Divisor divisor_[R == 0 ? 1 : R] = {};
};

// The CPU's way: indices that step forward without division.
template <size_t R>
struct Odometer {
  std::array<int64_t, R> extents;
  std::array<int64_t, R> index{};

  Odometer(const std::array<int64_t, R>& extents, int64_t linear) : extents(extents) {
    for (size_t axis = R; axis-- > 0;) {
      if (extents[axis] == 0) continue;  // No points: nobody will ask for one.
      index[axis] = linear % extents[axis];
      linear /= extents[axis];
    }
  }
  void Next() {
    for (size_t axis = R; axis-- > 0;) {
      if (++index[axis] < extents[axis]) return;
      index[axis] = 0;
    }
  }
};

// All extents but the last.
template <size_t R>
std::array<int64_t, R - 1> AllButLast(const std::array<int64_t, R>& extents) {
  std::array<int64_t, R - 1> outer;
  for (size_t axis = 0; axis + 1 < R; ++axis) outer[axis] = extents[axis];
  return outer;
}

// Visits the points [begin, end) in runs along the last axis, so that what depends on the others
// alone is computed once for each: point(indices...) in order.
template <size_t R, class Point>
void ForEachPoint(const std::array<int64_t, R>& extents, int64_t begin, int64_t end,
                  const Point& point) {
  if constexpr (R == 0) {
    if (begin < end) point();
  } else {
    Odometer<R> at(extents, begin);
    while (begin < end) {
      const int64_t first = at.index[R - 1];
      const int64_t last = std::min(extents[R - 1], first + end - begin);
      const auto run = [&](auto... outer) {
        for (int64_t i = first; i < last; ++i) point(outer..., i);
      };
      [&]<size_t... A>(std::index_sequence<A...>) {
        run(at.index[A]...);
      }(std::make_index_sequence<R - 1>());
      begin += last - first;
      at.index[R - 1] = extents[R - 1] - 1;
      at.Next();
    }
  }
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_INDEX_H_
