// Arithmetic on sizes: what generated host code computes with.
#ifndef SOFIE_RUNTIME_SIZES_H_
#define SOFIE_RUNTIME_SIZES_H_

#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>

namespace sofie {

// An integer that stays at the largest or smallest value instead of overflowing: products of sizes,
// and of numbers that somebody wrote into a tensor, may exceed 64 bits before anything is checked.
class Saturated {
 public:
  constexpr Saturated(int64_t value = 0) : value_(value) {}  // NOLINT: an integer is one.
  constexpr int64_t value() const { return value_; }
  explicit constexpr operator int64_t() const { return value_; }
  explicit constexpr operator double() const { return static_cast<double>(value_); }

  friend constexpr Saturated operator+(Saturated a, Saturated b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? Limit(a.value_ < 0) : sum;
  }
  friend constexpr Saturated operator-(Saturated a, Saturated b) {
    int64_t difference = 0;
    return __builtin_sub_overflow(a.value_, b.value_, &difference) ? Limit(a.value_ < 0)
                                                                   : difference;
  }
  friend constexpr Saturated operator-(Saturated a) { return Saturated(0) - a; }
  friend constexpr Saturated operator*(Saturated a, Saturated b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &product)
               ? Limit((a.value_ < 0) != (b.value_ < 0))
               : product;
  }
  // Rounded towards zero; 0 if b is 0.
  friend constexpr Saturated operator/(Saturated a, Saturated b) {
    if (b.value_ == 0) return 0;
    return b.value_ == -1 ? -a : Saturated(a.value_ / b.value_);
  }
  friend constexpr Saturated operator%(Saturated a, Saturated b) { return a - b * (a / b); }
  friend constexpr bool operator==(Saturated a, Saturated b) = default;
  friend constexpr auto operator<=>(Saturated a, Saturated b) = default;

 private:
  static constexpr int64_t Limit(bool negative) {
    return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  int64_t value_;
};

// The quotient rounded down; 0 if b is 0 (of no elements every share is empty).
constexpr Saturated FloorDiv(Saturated a, Saturated b) {
  const Saturated quotient = a / b;
  return quotient * b != a && b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <std::integral A, std::integral B>
constexpr int64_t FloorDiv(A a, B b) {
  return FloorDiv(Saturated(a), Saturated(b)).value();
}

// a - b * FloorDiv(a, b); a if b is 0.
constexpr Saturated FloorMod(Saturated a, Saturated b) {
  return b == -1 ? Saturated(0) : a - b * FloorDiv(a, b);
}
template <std::integral A, std::integral B>
constexpr int64_t FloorMod(A a, B b) {
  return FloorMod(Saturated(a), Saturated(b)).value();
}

constexpr Saturated Max(Saturated a, Saturated b) { return a < b ? b : a; }
constexpr Saturated Min(Saturated a, Saturated b) { return b < a ? b : a; }
template <std::integral A, std::integral B>
constexpr int64_t Max(A a, B b) {
  return Max(Saturated(a), Saturated(b)).value();
}
template <std::integral A, std::integral B>
constexpr int64_t Min(A a, B b) {
  return Min(Saturated(a), Saturated(b)).value();
}

// The largest integer up to x: 0 for NaN, and as far as 64 bits go.
inline int64_t Floor(double x) {
  constexpr double kFar = 9.2e18;
  if (std::isnan(x)) return 0;
  return static_cast<int64_t>(std::floor(std::fmin(std::fmax(x, -kFar), kFar)));
}

// How many numbers start, start + delta, … lie before limit; 0 if delta is 0.
constexpr Saturated Steps(Saturated start, Saturated limit, Saturated delta) {
  return Max(-FloorDiv(start - limit, delta), Saturated(0));
}
template <std::integral A, std::integral B, std::integral C>
constexpr int64_t Steps(A start, B limit, C delta) {
  return Steps(Saturated(start), Saturated(limit), Saturated(delta)).value();
}
inline int64_t Steps(double start, double limit, double delta) {
  const double steps = (limit - start) / delta;
  return delta == 0 || !std::isfinite(steps) ? 0 : -Floor(-std::fmax(steps, 0.0));
}

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SIZES_H_
