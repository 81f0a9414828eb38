// Arithmetic on sizes that C++'s operators do otherwise: generated host code calls it.
#ifndef SOFIE_RUNTIME_SIZES_H_
#define SOFIE_RUNTIME_SIZES_H_

#include <type_traits>

namespace sofie {

// The quotient rounded down; 0 if b is 0 (of no elements every share is empty). Real numbers are
// not rounded: they only estimate how large a size is.
template <class A, class B>
constexpr auto FloorDiv(A a, B b) -> std::common_type_t<A, B> {
  using T = std::common_type_t<A, B>;
  if (b == 0) return T{0};
  const T quotient = static_cast<T>(a) / static_cast<T>(b);
  if constexpr (std::is_integral_v<T>) {
    return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
  } else {
    return quotient;
  }
}

// a - b * FloorDiv(a, b); a if b is 0.
template <class A, class B>
constexpr auto FloorMod(A a, B b) -> std::common_type_t<A, B> {
  return a - b * FloorDiv(a, b);
}

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SIZES_H_
