// IEEE 754 half precision and bfloat16 as types of elements in memory. Plain C++20; arithmetic is
// that of float, into which both convert without loss.
#ifndef SOFIE_RUNTIME_FLOAT16_H_
#define SOFIE_RUNTIME_FLOAT16_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__F16C__) && !defined(__CUDA_ARCH__)
#include <immintrin.h>
#endif

// Marks a function for the host and, in nvcc's files, the device.
#if defined(__CUDACC__)
#define SOFIE_HOST_DEVICE __host__ __device__
#else
#define SOFIE_HOST_DEVICE
#endif

namespace sofie {

// The float nearest to a double that rounds to every narrower type as the double does: an inexact
// result has an odd last bit, so it is no tie of theirs (S. Boldo and G. Melquiond, "Emulation of a
// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). The types must
// have at least two bits fewer in their significand.
SOFIE_HOST_DEVICE constexpr float RoundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  // Infinity too: what overflows a float is less than infinite and more than its largest number.
  if (back == x || x != x || (bits & 1u) != 0) return nearest;
  const bool too_far = (back > x) == (x > 0);
  return std::bit_cast<float>(too_far ? bits - 1 : bits + 1);
}

// Half precision: 5 bits of exponent, 10 of fraction.
struct Float16 {
  uint16_t bits;

  Float16() = default;
  // The nearest value, of two the even one; beyond 65504, from 65520 on, infinity.
  SOFIE_HOST_DEVICE explicit constexpr Float16(float x) : bits(Round(x)) {}
  SOFIE_HOST_DEVICE explicit constexpr Float16(double x) : bits(Round(RoundToOdd(x))) {}
  template <std::integral T>
  SOFIE_HOST_DEVICE explicit constexpr Float16(T x) : Float16(static_cast<float>(x)) {}
  SOFIE_HOST_DEVICE static constexpr Float16 FromBits(uint16_t bits) {
    Float16 value{};
    value.bits = bits;
    return value;
  }

  SOFIE_HOST_DEVICE constexpr operator float() const {  // NOLINT: loses nothing.
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      float x;
      asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
      return x;
    }
#elif defined(__F16C__)
    if (!std::is_constant_evaluated()) return _cvtsh_ss(bits);
#endif
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t rest = bits & 0x7fffu;
    uint32_t wide = (rest << 13) + (uint32_t{127 - 15} << 23);
    if (rest >= 0x7c00) {
      wide += uint32_t{127 - 15} << 23;        // infinity and NaN
      if (rest > 0x7c00) wide |= 0x00400000u;  // a quiet one
    } else if (rest < 0x0400) {
      wide = std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24f);  // subnormal, and 0
    }
    return std::bit_cast<float>(wide | sign);
  }

 private:
  SOFIE_HOST_DEVICE static constexpr uint16_t Round(float x) {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      uint16_t half;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
      return half;
    }
#elif defined(__F16C__)
    if (!std::is_constant_evaluated()) {
      return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
#endif
    const uint32_t all = std::bit_cast<uint32_t>(x);
    const uint32_t sign = all >> 16 & 0x8000u;
    const uint32_t rest = all & 0x7fffffffu;
    uint32_t half = 0;
    if (rest > 0x7f800000u) {
      half = 0x7e00u | (rest >> 13 & 0x03ffu);  // a quiet NaN
    } else if (rest >= 0x477ff000u) {
      half = 0x7c00u;
    } else if (rest >= 0x38800000u) {
      half = (rest - (uint32_t{127 - 15} << 23) + 0x0fffu + (rest >> 13 & 1u)) >> 13;
    } else {
      // The last bit of a float between 0.5 and 1 is 2^-24, as a subnormal's is here.
      half = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
    }
    return static_cast<uint16_t>(half | sign);
  }
};

// A float without the lower 16 bits of its fraction.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // The nearest value, of two the even one.
  SOFIE_HOST_DEVICE explicit constexpr BFloat16(float x) : bits(Round(x)) {}
  SOFIE_HOST_DEVICE explicit constexpr BFloat16(double x) : bits(Round(RoundToOdd(x))) {}
  template <std::integral T>
  SOFIE_HOST_DEVICE explicit constexpr BFloat16(T x) : BFloat16(static_cast<float>(x)) {}
  SOFIE_HOST_DEVICE static constexpr BFloat16 FromBits(uint16_t bits) {
    BFloat16 value{};
    value.bits = bits;
    return value;
  }

  SOFIE_HOST_DEVICE constexpr operator float() const {  // NOLINT: loses nothing.
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }

 private:
  SOFIE_HOST_DEVICE static constexpr uint16_t Round(float x) {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      uint16_t result;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
      return result;
    }
#endif
    const uint32_t all = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
    const uint32_t quiet = all >> 16 | 0x0040u;
    return static_cast<uint16_t>(x != x ? quiet : rounded);
  }
};

static_assert(sizeof(Float16) == 2 && std::is_trivially_copyable_v<Float16>);
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_FLOAT16_H_
