// The associative operations of reductions. Each has an Accumulator, Identity() and
// operator()(a, b). A value read from memory converts to the Accumulator.
#ifndef SOFIE_RUNTIME_KERNELS_COMBINE_H_
#define SOFIE_RUNTIME_KERNELS_COMBINE_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

template <class T>
struct Sum {
  using Accumulator = T;
  SOFIE_MATH_FN static T Identity() { return T{0}; }
  SOFIE_MATH_FN T operator()(T a, T b) const { return static_cast<T>(a + b); }
};

template <class T>
struct Product {
  using Accumulator = T;
  SOFIE_MATH_FN static T Identity() { return T{1}; }
  SOFIE_MATH_FN T operator()(T a, T b) const { return static_cast<T>(a * b); }
};

// The largest value, NaN if there is one. The identity is -inf, or the lowest integer.
template <class T>
struct Max {
  using Accumulator = T;
  SOFIE_MATH_FN static T Identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) {
      return -std::numeric_limits<T>::infinity();
    } else {
      return std::numeric_limits<T>::lowest();
    }
  }
  SOFIE_MATH_FN T operator()(T a, T b) const { return Maximum(a, b); }
};

// The smallest value, NaN if there is one. The identity is +inf, or the largest integer.
template <class T>
struct Min {
  using Accumulator = T;
  SOFIE_MATH_FN static T Identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) {
      return std::numeric_limits<T>::infinity();
    } else {
      return std::numeric_limits<T>::max();
    }
  }
  SOFIE_MATH_FN T operator()(T a, T b) const { return Minimum(a, b); }
};

struct LogicalAnd {
  using Accumulator = bool;
  SOFIE_MATH_FN static bool Identity() { return true; }
  SOFIE_MATH_FN bool operator()(bool a, bool b) const { return a && b; }
};

struct LogicalOr {
  using Accumulator = bool;
  SOFIE_MATH_FN static bool Identity() { return false; }
  SOFIE_MATH_FN bool operator()(bool a, bool b) const { return a || b; }
};

// The maximum of a row and Σ exp(x - maximum), in one pass: what softmax divides by. A row with
// NaN or +inf has the sum NaN; a row of -inf alone has the sum 0, so that exp(x - max) / sum is NaN
// there, as the definition says. M. Milakov and N. Gimelshein, arXiv:1805.02867.
template <class T>
struct MaxSumExp {
  struct Accumulator {
    T max;
    T sum;
    Accumulator() = default;
    SOFIE_MATH_FN Accumulator(T max, T sum) : max(max), sum(sum) {}
    // One element.
    SOFIE_MATH_FN Accumulator(T x)  // NOLINT: an element is a row of length 1.
        : max(x), sum(x == -std::numeric_limits<T>::infinity() ? T{0} : (x - x) + T{1}) {}
  };
  SOFIE_MATH_FN static Accumulator Identity() {
    return {-std::numeric_limits<T>::infinity(), T{0}};
  }
  SOFIE_LIBM_FN Accumulator operator()(const Accumulator& a, const Accumulator& b) const {
    if (b.max == -std::numeric_limits<T>::infinity()) return a;
    if (a.max == -std::numeric_limits<T>::infinity()) return b;
    if (a.max >= b.max) return {a.max, a.sum + b.sum * std::exp(b.max - a.max)};
    return {b.max, b.sum + a.sum * std::exp(a.max - b.max)};
  }
};

// A value and where it was found. T must have an order; NaN is above every number for ArgMax and
// below every number for ArgMin, as in NumPy. Of equals the lowest index wins.
template <class T>
struct ValueIndex {
  T value;
  int64_t index;
};

template <class T>
SOFIE_MATH_FN ValueIndex<T> ValueAt(T value, int64_t index) {
  return {value, index};
}

template <class T>
struct ArgMax {
  using Accumulator = ValueIndex<T>;
  SOFIE_MATH_FN static Accumulator Identity() {
    return {Max<T>::Identity(), std::numeric_limits<int64_t>::max()};
  }
  SOFIE_MATH_FN Accumulator operator()(const Accumulator& a, const Accumulator& b) const {
    const bool a_nan = IsNaN(a.value);
    const bool b_nan = IsNaN(b.value);
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.value != b.value) return a.value > b.value ? a : b;
    return a.index < b.index ? a : b;
  }
};

template <class T>
struct ArgMin {
  using Accumulator = ValueIndex<T>;
  SOFIE_MATH_FN static Accumulator Identity() {
    return {Min<T>::Identity(), std::numeric_limits<int64_t>::max()};
  }
  SOFIE_MATH_FN Accumulator operator()(const Accumulator& a, const Accumulator& b) const {
    const bool a_nan = IsNaN(a.value);
    const bool b_nan = IsNaN(b.value);
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.value != b.value) return a.value < b.value ? a : b;
    return a.index < b.index ? a : b;
  }
};

// Count, mean and Σ (x - mean)², merged by T. F. Chan, G. H. Golub and R. J. LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
template <class T>
struct MeanVariance {
  struct Accumulator {
    T count;
    T mean;
    T m2;
    Accumulator() = default;
    SOFIE_MATH_FN Accumulator(T count, T mean, T m2) : count(count), mean(mean), m2(m2) {}
    // One element.
    SOFIE_MATH_FN Accumulator(T x) : count(1), mean(x), m2(0) {}  // NOLINT: a row of length 1.
    // The population variance.
    SOFIE_MATH_FN T variance() const { return m2 / count; }
  };
  SOFIE_MATH_FN static Accumulator Identity() { return {T{0}, T{0}, T{0}}; }
  SOFIE_MATH_FN Accumulator operator()(const Accumulator& a, const Accumulator& b) const {
    if (b.count == T{0}) return a;
    if (a.count == T{0}) return b;
    const T count = a.count + b.count;
    const T delta = b.mean - a.mean;
    const T weight = b.count / count;
    return {count, a.mean + delta * weight, a.m2 + b.m2 + delta * delta * a.count * weight};
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_COMBINE_H_
