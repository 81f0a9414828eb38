// The arguments of TopK and the order it selects by.
#ifndef SOFIE_RUNTIME_KERNELS_TOPK_KEY_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_KEY_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

// The k largest or smallest of each row of x, packed [outer, axis, inner]; values and indices are
// packed [outer, k, inner] and either may be null. Order: by value, NaN above every number, -0
// equal to 0, equals by lowest index first. 0 ≤ k ≤ axis. Results are sorted whether or not
// `sorted` asks for it.
template <class T>
struct TopKArgs {
  const T* x = nullptr;
  T* values = nullptr;
  int64_t* indices = nullptr;
  int64_t outer = 0;
  int64_t axis = 0;
  int64_t inner = 1;
  int64_t k = 0;
  bool largest = true;
  bool sorted = true;
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
