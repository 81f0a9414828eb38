// Functions of a float32 that the compiler can compute for several numbers at once, in loops on a
// CPU: arithmetic without branches, tables or calls, where the C library has a call for each
// number. Errors are in units of the last place and include those of arithmetic; polynomials are
// minimax fits. NaN gives NaN, infinities and numbers out of range what the C library gives.
#ifndef SOFIE_RUNTIME_VECTOR_MATH_H_
#define SOFIE_RUNTIME_VECTOR_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// glibc has variants for vectors of these, of at most 4 ulp, which GCC calls in loops once it is
// told.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && defined(__GLIBC__) && \
    defined(__x86_64__)
extern "C" {
__attribute__((__simd__("notinbranch"))) float sinf(float) noexcept;
__attribute__((__simd__("notinbranch"))) float cosf(float) noexcept;
}
#endif

namespace sofie::vector_math {

// ln(2) in two parts, of which the first has so few bits that its products with exponents are
// exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;

// Σ coefficient[i] xⁱ.
template <int kCount>
inline float Polynomial(float x, const float (&coefficient)[kCount]) {
  float sum = coefficient[kCount - 1];
#pragma GCC unroll 16
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficient[i];
  return sum;
}

// exp(x) = 2ⁿ (1 + rest) with the nearest whole n, for |x| < 2²¹.
struct ExpParts {
  int32_t n;
  float rest;
};
inline ExpParts PartsOfExp(float x) {
  // Adding it leaves the nearest whole number in the lowest bits.
  constexpr float kRound = 12582912.0f;
  constexpr float kCoefficients[] = {0.49999997f, 0.16666543f, 0.0416672f, 0.0083665336f,
                                     0.0013882519f};
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const uint32_t whole = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  return {static_cast<int32_t>(whole), Polynomial(r, kCoefficients) * (r * r) + r};
}

// 2ⁿ for -127 < n < 128, and 0 for n = -127.
inline float PowerOfTwo(int32_t n) {
  return std::bit_cast<float>((static_cast<uint32_t>(n) + 127u) << 23);
}

// x within [low, high]; NaN stays NaN.
inline float Within(float x, float low, float high) {
  const float bounded = x < low ? low : x;
  return bounded > high ? high : bounded;
}

// Within 1.1 ulp, results below the smallest normal number included.
inline float Exp(float x) {
  const ExpParts parts = PartsOfExp(Within(x, -104.0f, 89.0f));
  // 2ⁿ itself may be out of range.
  const int32_t half = parts.n >> 1;
  return (1.0f + parts.rest) * PowerOfTwo(half) * PowerOfTwo(parts.n - half);
}

// exp(x) of numbers that are not positive, within 1.1 ulp where that is a normal number; 0 below
// -87.7.
inline float ExpOfNonPositive(float x) {
  constexpr float kZero = -88.0f;  // n = -127
  const ExpParts parts = PartsOfExp(x < kZero ? kZero : x);
  return (1.0f + parts.rest) * PowerOfTwo(parts.n);
}

// exp(x) - 1, within 2 ulp.
inline float Expm1(float x) {
  const ExpParts parts = PartsOfExp(Within(x, -87.0f, 89.0f));
  // Half of 2ⁿ is in range where 2ⁿ is not.
  const float half = PowerOfTwo(parts.n - 1);
  return 2.0f * (half * parts.rest + (half - 0.5f));
}

// The same of numbers that are not positive.
inline float Expm1OfNonPositive(float x) {
  constexpr float kLowest = -87.0f;
  const ExpParts parts = PartsOfExp(x < kLowest ? kLowest : x);
  const float power = PowerOfTwo(parts.n);
  return power * parts.rest + (power - 1.0f);
}

// log(1 + f) for 1 + f between √½ and √2.
inline float LogNearOne(float f) {
  constexpr float kCoefficients[] = {0.3333333f,  -0.2500082f, 0.20001227f, -0.16623357f,
                                     0.14201759f, -0.1316018f, 0.12761575f, -0.07634493f};
  return Polynomial(f, kCoefficients) * (f * f * f) - 0.5f * f * f;
}

// Within 1 ulp.
inline float Log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNormal = std::numeric_limits<float>::min();
  constexpr float kScale = 0x1p23f;
  // The bits of √½: what is added makes exponents count from there.
  constexpr uint32_t kRootOfHalf = 0x3f3504f3u;
  const bool small = x < kNormal;
  const uint32_t bits =
      std::bit_cast<uint32_t>(small ? x * kScale : x) + (0x3f800000u - kRootOfHalf);
  const int32_t exponent = static_cast<int32_t>(bits >> 23) - (small ? 127 + 23 : 127);
  const float f = std::bit_cast<float>((bits & 0x007fffffu) + kRootOfHalf) - 1.0f;
  const auto n = static_cast<float>(exponent);
  const float result = n * kLn2High + (f + (n * kLn2Low + LogNearOne(f)));
  const float at_zero = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x > 0.0f ? (x == kInfinity ? x : result) : at_zero;
}

// log(1 + x) of numbers between 0 and 1, within 2 ulp.
inline float Log1pOfFraction(float x) {
  const bool halve = x > 0.41421356f;
  const float f = halve ? 0.5f * (x - 1.0f) : x;
  return (halve ? 0.693147181f : 0.0f) + (f + LogNearOne(f));
}

// Within 3 ulp: -t / (2 + t) with t = exp(-2|x|) - 1.
inline float Tanh(float x) {
  const float t = Expm1OfNonPositive(-2.0f * std::abs(x));
  return std::copysign(-t / (2.0f + t), x);
}

// Within 3 ulp: 1 - exp(-g) with g = -log(1 - erf(|x|)), a polynomial up to where the result is 1.
inline float Erf(float x) {
  constexpr float kCoefficients[] = {1.1283792f,     0.6366194f,     0.10277783f,
                                     -0.019153064f,  -0.0001603974f, 0.001667029f,
                                     -0.0006328378f, 0.00011764153f, -9.256296e-06f};
  constexpr float kMost = 3.95f;
  const float a = std::abs(x) > kMost ? kMost : std::abs(x);
  return std::copysign(-Expm1OfNonPositive(-a * Polynomial(a, kCoefficients)), x);
}

inline float Sin(float x) { return ::sinf(x); }
inline float Cos(float x) { return ::cosf(x); }

}  // namespace sofie::vector_math

#endif  // SOFIE_RUNTIME_VECTOR_MATH_H_
