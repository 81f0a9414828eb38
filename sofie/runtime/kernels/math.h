// Element functions for kernel bodies, on all accelerators. NaN and infinity go where NumPy and
// ONNX Runtime let them go; integer division and remainder by zero are undefined, as in C++.
#ifndef SOFIE_RUNTIME_KERNELS_MATH_H_
#define SOFIE_RUNTIME_KERNELS_MATH_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sofie/runtime/alpaka/version.h"

#if !defined(__CUDACC__)
#include "sofie/runtime/vector_math.h"
#endif

namespace sofie::kernels {

// Marks a function that bodies call: on the host and, in nvcc's files, on the device.
#define SOFIE_MATH_FN ALPAKA_FN_HOST_ACC ALPAKA_FN_INLINE constexpr
// The same for what ends in the C library, which is not constexpr.
#define SOFIE_LIBM_FN ALPAKA_FN_HOST_ACC ALPAKA_FN_INLINE

// Within a function of T: on a CPU, float32 takes the form that the compiler can vectorise.
#if defined(__CUDACC__)
#define SOFIE_IN_VECTORS(call)
#else
#define SOFIE_IN_VECTORS(call) \
  if constexpr (std::is_same_v<T, float>) return vector_math::call
#endif

template <class T>
SOFIE_MATH_FN bool IsNaN(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x != x;
  } else {
    return false;
  }
}

template <class T>
SOFIE_MATH_FN bool IsInf(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  } else {
    return false;
  }
}

// Infinities of the wanted signs.
template <class T>
SOFIE_MATH_FN bool IsInf(T x, bool negative, bool positive) {
  return IsInf(x) && (x < T{0} ? negative : positive);
}

// Equality of keys, where NaN is one of them.
template <class T>
SOFIE_MATH_FN bool SameKey(T a, T b) {
  return a == b || (IsNaN(a) && IsNaN(b));
}

// The larger or smaller one; NaN if either is NaN. On a CPU two selections in a row, for which a
// compiler makes no branches.
template <class T>
SOFIE_MATH_FN T Maximum(T a, T b) {
#if defined(__CUDACC__)
  return b > a ? b : (IsNaN(b) ? b : a);
#else
  const T larger = b > a ? b : a;
  return IsNaN(b) ? b : larger;
#endif
}
template <class T>
SOFIE_MATH_FN T Minimum(T a, T b) {
#if defined(__CUDACC__)
  return b < a ? b : (IsNaN(b) ? b : a);
#else
  const T smaller = b < a ? b : a;
  return IsNaN(b) ? b : smaller;
#endif
}

// x limited on one side or on both, the upper limit last; NaN stays NaN.
template <class T>
SOFIE_MATH_FN T AtLeast(T x, T low) {
  return x < low ? low : x;
}
template <class T>
SOFIE_MATH_FN T AtMost(T x, T high) {
  return high < x ? high : x;
}
template <class T>
SOFIE_MATH_FN T Clip(T x, T low, T high) {
  return AtMost(AtLeast(x, low), high);
}

template <class T>
SOFIE_MATH_FN T Relu(T x) {
  return x < T{0} ? T{0} : x;
}
template <class T>
SOFIE_MATH_FN T LeakyRelu(T x, T slope) {
  return x < T{0} ? slope * x : x;
}
template <class T>
SOFIE_MATH_FN T Abs(T x) {
  if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::abs(x);
  } else {
    return static_cast<T>(x < 0 ? -x : x);
  }
}
// -1, 0 or 1; NaN stays NaN.
template <class T>
SOFIE_MATH_FN T Sign(T x) {
  if (IsNaN(x)) return x;
  return static_cast<T>(static_cast<int>(T{0} < x) - static_cast<int>(x < T{0}));
}

template <class T>
SOFIE_LIBM_FN T Exp(T x) {
  SOFIE_IN_VECTORS(Exp(x));
  return std::exp(x);
}
// exp(x) of numbers that are not positive; what is smaller than normal numbers may be 0.
template <class T>
SOFIE_LIBM_FN T ExpOfNonPositive(T x) {
  SOFIE_IN_VECTORS(ExpOfNonPositive(x));
  return std::exp(x);
}
// exp(x) - 1.
template <class T>
SOFIE_LIBM_FN T Expm1(T x) {
  SOFIE_IN_VECTORS(Expm1(x));
  return std::expm1(x);
}
// exp(x - maximum), and almost 0 where x is at most `bound` away from 0: ai.onnx.ml's SOFTMAX_ZERO.
template <class T>
SOFIE_LIBM_FN T ExpUnlessZero(T x, T maximum, T bound) {
  return std::abs(x) > bound ? std::exp(x - maximum) : x * std::exp(-maximum);
}
template <class T>
SOFIE_LIBM_FN T Log(T x) {
  SOFIE_IN_VECTORS(Log(x));
  return std::log(x);
}
template <class T>
SOFIE_LIBM_FN T Log1p(T x) {
  return std::log1p(x);
}
// log(1 + x) of numbers between 0 and 1.
template <class T>
SOFIE_LIBM_FN T Log1pOfFraction(T x) {
  SOFIE_IN_VECTORS(Log1pOfFraction(x));
  return std::log1p(x);
}
template <class T>
SOFIE_LIBM_FN T Sqrt(T x) {
  return std::sqrt(x);
}
template <class T>
SOFIE_LIBM_FN T InverseSqrt(T x) {
  return T{1} / std::sqrt(x);
}
template <class T>
SOFIE_LIBM_FN T Reciprocal(T x) {
  return T{1} / x;
}
template <class T>
SOFIE_LIBM_FN T Tanh(T x) {
  SOFIE_IN_VECTORS(Tanh(x));
  return std::tanh(x);
}
template <class T>
SOFIE_LIBM_FN T Erf(T x) {
  SOFIE_IN_VECTORS(Erf(x));
  return std::erf(x);
}
template <class T>
SOFIE_LIBM_FN T Sin(T x) {
  SOFIE_IN_VECTORS(Sin(x));
  return std::sin(x);
}
template <class T>
SOFIE_LIBM_FN T Cos(T x) {
  SOFIE_IN_VECTORS(Cos(x));
  return std::cos(x);
}
template <class T>
SOFIE_LIBM_FN T Tan(T x) {
  return std::tan(x);
}
template <class T>
SOFIE_LIBM_FN T Asin(T x) {
  return std::asin(x);
}
template <class T>
SOFIE_LIBM_FN T Acos(T x) {
  return std::acos(x);
}
template <class T>
SOFIE_LIBM_FN T Atan(T x) {
  return std::atan(x);
}
template <class T>
SOFIE_LIBM_FN T Atan2(T y, T x) {
  return std::atan2(y, x);
}
template <class T>
SOFIE_LIBM_FN T Sinh(T x) {
  return std::sinh(x);
}
template <class T>
SOFIE_LIBM_FN T Cosh(T x) {
  return std::cosh(x);
}
template <class T>
SOFIE_LIBM_FN T Asinh(T x) {
  return std::asinh(x);
}
template <class T>
SOFIE_LIBM_FN T Acosh(T x) {
  return std::acosh(x);
}
template <class T>
SOFIE_LIBM_FN T Atanh(T x) {
  return std::atanh(x);
}
template <class T>
SOFIE_LIBM_FN T Floor(T x) {
  return std::floor(x);
}
template <class T>
SOFIE_LIBM_FN T Ceil(T x) {
  return std::ceil(x);
}
// To the nearest integer, halves to even.
template <class T>
SOFIE_LIBM_FN T Round(T x) {
  return std::rint(x);
}

// A number on its way to a quantised one: to the nearest integer, halves to even, then the zero
// point, then into [low, high]. NaN counts as 0.
template <class T>
SOFIE_LIBM_FN T Quantized(T x, T zero_point, T low, T high) {
  return Clip((IsNaN(x) ? T{0} : Round(x)) + zero_point, low, high);
}

// 1 / (1 + exp(-x)), without overflow for either sign.
template <class T>
SOFIE_LIBM_FN T Sigmoid(T x) {
  const T e = ExpOfNonPositive(-Abs(x));
  return (x < T{0} ? e : T{1}) / (T{1} + e);
}
template <class T>
SOFIE_LIBM_FN T Silu(T x) {
  return x * Sigmoid(x);
}
template <class T>
SOFIE_LIBM_FN T HardSigmoid(T x, T alpha, T beta) {
  return Clip(alpha * x + beta, T{0}, T{1});
}
template <class T>
SOFIE_LIBM_FN T Elu(T x, T alpha) {
  return x < T{0} ? alpha * Expm1(x) : x;
}
template <class T>
SOFIE_LIBM_FN T Selu(T x, T alpha, T gamma) {
  return gamma * Elu(x, alpha);
}
template <class T>
SOFIE_LIBM_FN T Celu(T x, T alpha) {
  return x < T{0} ? alpha * Expm1(x / alpha) : x;
}
template <class T>
SOFIE_MATH_FN T ThresholdedRelu(T x, T threshold) {
  return x <= threshold ? T{0} : x;
}
template <class T>
SOFIE_LIBM_FN T HardSwish(T x) {
  return x * HardSigmoid(x, T{1} / T{6}, T{0.5});
}
template <class T>
SOFIE_LIBM_FN T Softsign(T x) {
  return x / (T{1} + Abs(x));
}
// The logarithm of Σ exp(x), from the maximum of x and Σ exp(x - maximum).
template <class T>
SOFIE_LIBM_FN T LogSumExp(T maximum, T sum) {
  return IsInf(maximum) ? maximum : maximum + Log(sum);
}
// x sigmoid(alpha x).
template <class T>
SOFIE_LIBM_FN T Swish(T x, T alpha) {
  return x * Sigmoid(alpha * x);
}
// Numbers within [-threshold, threshold] become 0, others move by `bias` towards it.
template <class T, class S>
SOFIE_MATH_FN T Shrink(T x, S threshold, S bias) {
  const S value = static_cast<S>(x);
  if (value < -threshold) return static_cast<T>(value + bias);
  if (value > threshold) return static_cast<T>(value - bias);
  return IsNaN(x) ? x : T{0};
}
// log(1 + exp(x)), without overflow.
template <class T>
SOFIE_LIBM_FN T Softplus(T x) {
  return (x > T{0} ? x : T{0}) + Log1pOfFraction(ExpOfNonPositive(-Abs(x)));
}
template <class T>
SOFIE_LIBM_FN T Mish(T x) {
  return x * Tanh(Softplus(x));
}
// 0.5 x (1 + erf(x / √2)).
template <class T>
SOFIE_LIBM_FN T Gelu(T x) {
  return T{0.5} * x * (T{1} + Erf(x * static_cast<T>(0.70710678118654752440)));
}
// The approximation with tanh: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))).
template <class T>
SOFIE_LIBM_FN T GeluTanh(T x) {
  const T inner =
      static_cast<T>(0.79788456080286535588) * (x + static_cast<T>(0.044715) * x * x * x);
  return T{0.5} * x * (T{1} + Tanh(inner));
}

// base^exponent. Integers by repeated squaring, wrapping; a negative integer exponent truncates
// the exact result towards zero. The exponent 2, by far the commonest, is one multiplication.
template <class T, class E>
SOFIE_LIBM_FN T Pow(T base, E exponent) {
  if (exponent == E{2}) return static_cast<T>(base * base);
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(base, static_cast<T>(exponent));
  } else if constexpr (std::is_floating_point_v<E>) {
    return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else {
    if constexpr (std::is_signed_v<E>) {
      if (exponent < 0) {
        if (base == T{1}) return T{1};
        if constexpr (std::is_signed_v<T>) {
          if (base == T{-1}) return exponent % 2 == 0 ? T{1} : T{-1};
        }
        return T{0};
      }
    }
    uint64_t power = static_cast<uint64_t>(base);
    uint64_t result = 1;
    for (uint64_t rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
      if (rest & 1) result *= power;
      power *= power;
    }
    return static_cast<T>(result);
  }
}

// The inverse of the normal distribution's cumulative function, as ai.onnx.ml approximates it: S.
// Winitzki, "A handy approximation for the error function and its inverse", 2008.
template <class T>
SOFIE_LIBM_FN T Probit(T p) {
  const T x = T{2} * p - T{1};
  const T product = (T{1} - x) * (T{1} + x);
  if (product == T{0}) return T{0};
  constexpr T kA = static_cast<T>(0.147);
  const T logarithm = std::log(product);
  const T v = static_cast<T>(2 / 3.14159265358979323846) / kA + T{0.5} * logarithm;
  const T root = std::sqrt(std::sqrt(v * v - logarithm / kA) - v);
  return static_cast<T>(1.41421356237309504880) * (x < T{0} ? -root : root);
}

// The remainder with the sign of the dividend: C's fmod and %, ONNX Mod with fmod = 1. Integers:
// nothing traps, x % 0 is 0.
template <class T>
SOFIE_LIBM_FN T TruncMod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
    }
    return static_cast<T>(a % b);
  }
}
// The remainder with the sign of the divisor: Python's %, ONNX Mod with fmod = 0.
template <class T>
SOFIE_LIBM_FN T FloorMod(T a, T b) {
  const T remainder = TruncMod(a, b);
  if constexpr (std::is_unsigned_v<T>) {
    return remainder;
  } else {
    return remainder != T{0} && ((remainder < T{0}) != (b < T{0})) ? static_cast<T>(remainder + b)
                                                                   : remainder;
  }
}
// x · 2^bits and x / 2^bits rounded down; bits beyond the type's width leave 0, or -1 of a negative
// x that moves right.
template <class T>
SOFIE_MATH_FN T ShiftLeft(T x, T bits) {
  using U = std::make_unsigned_t<T>;
  if (static_cast<U>(bits) >= U{8 * sizeof(T)}) return T{0};
  return static_cast<T>(static_cast<uint64_t>(x) << static_cast<uint64_t>(bits));
}
template <class T>
SOFIE_MATH_FN T ShiftRight(T x, T bits) {
  using U = std::make_unsigned_t<T>;
  constexpr U kLast{8 * sizeof(T) - 1};
  if (static_cast<U>(bits) <= kLast) return static_cast<T>(x >> bits);
  if constexpr (std::is_signed_v<T>) return static_cast<T>(x >> kLast);
  return T{0};
}
// The quotient rounded towards zero, as ONNX Div has it. Integers: nothing traps, x / 0 is 0 and
// the lowest number / -1 wraps.
template <class T>
SOFIE_MATH_FN T Divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1})
        return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(a));
    }
  }
  return static_cast<T>(a / b);
}
// The quotient, and `otherwise` where the divisor is 0.
template <class T>
SOFIE_MATH_FN T DivideOr(T a, T b, T otherwise) {
  return b == T{0} ? otherwise : a / b;
}
// The quotient rounded towards minus infinity.
template <class T>
SOFIE_LIBM_FN T FloorDiv(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(a / b);
  } else if constexpr (std::is_signed_v<T>) {
    const T quotient = static_cast<T>(a / b);
    return a % b != 0 && ((a < 0) != (b < 0)) ? static_cast<T>(quotient - 1) : quotient;
  } else {
    return static_cast<T>(a / b);
  }
}

// An index into an axis of `extent` elements, counted from the end where negative. What lies
// outside goes to the nearest end, so that no memory outside of the tensor is read; 0 for an empty
// axis.
SOFIE_MATH_FN int64_t WrapIndex(int64_t index, int64_t extent) {
  const int64_t wrapped = index < 0 ? index + extent : index;
  const int64_t below = wrapped >= extent ? extent - 1 : wrapped;
  return below < 0 ? 0 : below;
}

// A whole number as an index into an axis of `extent` elements. What lies outside goes to the
// nearest end, and NaN to the first element.
template <class T>
SOFIE_MATH_FN int64_t ClampIndex(T place, int64_t extent) {
  if (!(place > T{0})) return 0;
  const int64_t last = extent < 1 ? 0 : extent - 1;
  return place < static_cast<T>(last) ? static_cast<int64_t>(place) : last;
}

// x, thrown back at low and high until it lies between them.
template <class T>
SOFIE_LIBM_FN T Reflect(T x, T low, T high) {
  if (x >= low && x <= high) return x;
  const T length = high - low;
  if (!(length > T{0})) return low;
  const T distance = Abs(x - low);
  const T turns = std::floor(distance / length);
  const T rest = std::fmod(distance, length);
  return turns == T{2} * std::floor(turns / T{2}) ? low + rest : high - rest;
}

#undef SOFIE_IN_VECTORS

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_MATH_H_
