// The arguments of TopK and the order it selects by.
#ifndef SOFIE_RUNTIME_KERNELS_TOPK_KEY_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_KEY_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

// The k largest or smallest of each row of [outer, axis, inner] elements; values and indices are
// packed [outer, k, inner] and either may be null. Order: by value, NaN above every number, -0
// equal to 0, equals by lowest index first. 0 ≤ k ≤ axis. Results are sorted whether or not
// `sorted` asks for it.
template <class T>
struct TopKArgs {
  T* values = nullptr;
  int64_t* indices = nullptr;
  int64_t axis = 0;
  int64_t inner = 1;
  int64_t k = 0;
  bool largest = true;
  bool sorted = true;
};

// A row whose elements a body computes: element j is body.Load(kept…, j).
template <class T, class Body, class I, size_t K>
struct TopKRow {
  const Body& body;
  Indices<I, K> kept;
  int64_t output;  // where the row's first result is

  ALPAKA_FN_HOST_ACC TopKRow(const TopKArgs<T>& args, const Body& body, const Indices<I, K>& kept,
                             int64_t row)
      : body(body), kept(kept) {
    const int64_t outer = args.inner == 1 ? row : row / args.inner;
    output = outer * args.k * args.inner + row - outer * args.inner;
  }
  ALPAKA_FN_HOST_ACC T operator[](int64_t j) const {
    return Load(static_cast<I>(j), std::make_index_sequence<K>());
  }

 private:
  template <size_t... A>
  ALPAKA_FN_HOST_ACC T Load(I j, std::index_sequence<A...>) const {
    return body.Load(kept.value[A]..., j);
  }
};

// An unsigned integer that is larger the earlier the value is selected.
template <class T>
struct TopKKey {
  using Type = std::conditional_t<(sizeof(T) <= 4), uint32_t, uint64_t>;

  SOFIE_MATH_FN static Type Of(T x, bool largest) {
    if constexpr (std::is_class_v<T>) return TopKKey<float>::Of(x, largest);
    constexpr Type kSign = Type{1} << (8 * sizeof(Type) - 1);
    Type key = 0;
    if constexpr (std::is_floating_point_v<T>) {
      if (IsNaN(x)) {
        key = ~Type{0};
      } else {
        // 0 in place of -0, so that they are equal.
        const Type bits = std::bit_cast<Type>(x == T{0} ? T{0} : x);
        key = (bits & kSign) != 0 ? ~bits : bits | kSign;
      }
    } else if constexpr (std::is_signed_v<T>) {
      key = static_cast<Type>(static_cast<std::make_signed_t<Type>>(x)) ^ kSign;
    } else {
      key = static_cast<Type>(x);
    }
    return largest ? key : static_cast<Type>(~key);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TOPK_KEY_H_
