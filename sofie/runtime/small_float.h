// Floating-point numbers of 8 and of 4 bits, and integers of 4 and of 2, as types of elements in
// memory. Plain C++20. The formats are ONNX's: https://onnx.ai/onnx/technical/float8.html,
// https://onnx.ai/onnx/technical/float4.html and https://onnx.ai/onnx/technical/int4.html.
#ifndef SOFIE_RUNTIME_SMALL_FLOAT_H_
#define SOFIE_RUNTIME_SMALL_FLOAT_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "sofie/runtime/float16.h"

namespace sofie {

// What a format has beside finite numbers. kInfinity: infinities and NaNs, as IEEE 754 has them.
// kNaN: one NaN of each sign, all bits set. kUnsigned: one NaN in the place of -0. kNone: nothing.
enum class Specials : uint8_t { kInfinity, kNaN, kUnsigned, kNone };

// Sign, exponent and fraction in the low bits of a byte.
template <int kExponentBits, int kFractionBits, int kBias, Specials kSpecials>
struct SmallFloat {
  uint8_t bits;

  SmallFloat() = default;
  // The nearest value, of two the even one; what lies beyond the largest becomes the largest.
  SOFIE_HOST_DEVICE explicit constexpr SmallFloat(float x) : bits(Round(x, true)) {}
  SOFIE_HOST_DEVICE explicit constexpr SmallFloat(double x) : SmallFloat(RoundToOdd(x)) {}
  template <std::integral T>
  SOFIE_HOST_DEVICE explicit constexpr SmallFloat(T x) : SmallFloat(static_cast<float>(x)) {}
  // The same; without `saturate`, what lies beyond the largest becomes infinite, or NaN.
  template <class T>
  SOFIE_HOST_DEVICE static constexpr SmallFloat From(T x, bool saturate) {
    if constexpr (std::is_same_v<T, double>) {
      return FromBits(Round(RoundToOdd(x), saturate));
    } else {
      return FromBits(Round(static_cast<float>(x), saturate));
    }
  }
  SOFIE_HOST_DEVICE static constexpr SmallFloat FromBits(uint8_t bits) {
    SmallFloat value{};
    value.bits = bits;
    return value;
  }

  SOFIE_HOST_DEVICE constexpr operator float() const {  // NOLINT: loses nothing.
    const uint32_t rest = bits & kMagnitude;
    if (IsNaN()) return std::bit_cast<float>(kFloatNaN);
    uint32_t wide = (rest << (23 - kFractionBits)) + (uint32_t{127 - kBias} << 23);
    if (kSpecials == Specials::kInfinity && rest > kLargest) {
      wide = kFloatInfinity;
    } else if (rest < uint32_t{1} << kFractionBits) {
      // Subnormal, and 0.
      wide =
          std::bit_cast<uint32_t>(static_cast<float>(rest) * PowerOf2(1 - kBias - kFractionBits));
    }
    return std::bit_cast<float>(wide | static_cast<uint32_t>(bits & kSign) << (31 - kWidth));
  }

 private:
  static constexpr int kWidth = kExponentBits + kFractionBits;  // of all but the sign
  static constexpr uint32_t kSign = uint32_t{1} << kWidth;
  static constexpr uint32_t kMagnitude = kSign - 1;
  static constexpr uint32_t kFloatInfinity = 0x7f800000u;
  static constexpr uint32_t kFloatNaN = 0x7fc00000u;
  // The largest finite number; beyond it, infinity or NaN.
  static constexpr uint32_t kLargest =
      kSpecials == Specials::kInfinity
          ? kMagnitude - (uint32_t{1} << kFractionBits)
          : (kSpecials == Specials::kNaN ? kMagnitude - 1 : kMagnitude);

  // 2^exponent.
  SOFIE_HOST_DEVICE static constexpr float PowerOf2(int exponent) {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23);
  }

  SOFIE_HOST_DEVICE constexpr bool IsNaN() const {
    if constexpr (kSpecials == Specials::kInfinity) return (bits & kMagnitude) > kLargest + 1;
    if constexpr (kSpecials == Specials::kNaN) return (bits & kMagnitude) == kMagnitude;
    if constexpr (kSpecials == Specials::kUnsigned) return bits == kSign;
    return false;
  }

  SOFIE_HOST_DEVICE static constexpr uint8_t Round(float x, bool saturate) {
    const uint32_t all = std::bit_cast<uint32_t>(x);
    const uint32_t sign = all >> (31 - kWidth) & kSign;
    const uint32_t rest = all & 0x7fffffffu;
    if (rest > kFloatInfinity) {
      switch (kSpecials) {
        case Specials::kInfinity:  // a quiet one
          return static_cast<uint8_t>(sign | (kLargest + 1) | uint32_t{1} << (kFractionBits - 1));
        case Specials::kNaN:
          return static_cast<uint8_t>(sign | kMagnitude);
        case Specials::kUnsigned:
          return static_cast<uint8_t>(kSign);
        case Specials::kNone:
          return 0;
      }
    }
    uint32_t code = 0;
    if (rest < static_cast<uint32_t>(127 + 1 - kBias) << 23) {
      // Subnormal, or the least normal number: counted in units of the last place. The sum with
      // 2^23 has no fraction.
      const float units = std::bit_cast<float>(rest) * PowerOf2(kBias - 1 + kFractionBits);
      code = static_cast<uint32_t>((units + 0x1p23f) - 0x1p23f);
    } else {
      constexpr int kDropped = 23 - kFractionBits;
      const uint32_t half = (uint32_t{1} << (kDropped - 1)) - 1 + (rest >> kDropped & 1u);
      code = ((rest + half) >> kDropped) - (uint32_t{127 - kBias} << kFractionBits);
    }
    if (code > kLargest) {
      if (!saturate && kSpecials == Specials::kUnsigned) return static_cast<uint8_t>(kSign);
      code = saturate || kSpecials == Specials::kNone ? kLargest : kLargest + 1;
    }
    if (kSpecials == Specials::kUnsigned && code == 0) return 0;
    return static_cast<uint8_t>(sign | code);
  }
};

using Float8E4M3FN = SmallFloat<4, 3, 7, Specials::kNaN>;
using Float8E4M3FNUZ = SmallFloat<4, 3, 8, Specials::kUnsigned>;
using Float8E5M2 = SmallFloat<5, 2, 15, Specials::kInfinity>;
using Float8E5M2FNUZ = SmallFloat<5, 2, 16, Specials::kUnsigned>;
using Float4E2M1 = SmallFloat<2, 1, 1, Specials::kNone>;

// How a power of two is chosen for a number between two of them.
enum class Rounding : uint8_t { kUp, kDown, kNearest };

// 2^(bits - 127), or NaN: a scale. Of a number it takes the magnitude.
struct Float8E8M0 {
  uint8_t bits;

  Float8E8M0() = default;
  SOFIE_HOST_DEVICE explicit constexpr Float8E8M0(float x)
      : bits(From(x, true, Rounding::kUp).bits) {}
  template <class T>
    requires(std::integral<T> || std::is_same_v<T, double>)
  SOFIE_HOST_DEVICE explicit constexpr Float8E8M0(T x) : Float8E8M0(static_cast<float>(x)) {}
  // Infinity becomes NaN; what is above 2^127, with `saturate`, 2^127, else NaN.
  template <class T>
  SOFIE_HOST_DEVICE static constexpr Float8E8M0 From(T x, bool saturate, Rounding rounding) {
    const uint32_t rest = std::bit_cast<uint32_t>(static_cast<float>(x)) & 0x7fffffffu;
    const uint32_t exponent = rest >> 23;
    const uint32_t fraction = rest & 0x007fffffu;
    bool up = false;
    if (rounding == Rounding::kUp) up = fraction > 0;
    // Half way from one power to the next the upper one is nearest, but for the least numbers.
    if (rounding == Rounding::kNearest) {
      up = exponent > 0 ? fraction >= 0x00400000u : fraction > 0x00400000u;
    }
    if (exponent == 0xff || (exponent == 0xfe && saturate)) up = false;
    Float8E8M0 value{};
    value.bits = static_cast<uint8_t>(exponent + (up ? 1 : 0));
    return value;
  }
  SOFIE_HOST_DEVICE static constexpr Float8E8M0 FromBits(uint8_t bits) {
    Float8E8M0 value{};
    value.bits = bits;
    return value;
  }

  SOFIE_HOST_DEVICE constexpr operator float() const {  // NOLINT: loses nothing.
    if (bits == 0xff) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t{bits} << 23);
  }
};

// An integer of kBits bits; others lose their upper bits.
template <int kBits, class Wide>
struct SmallInteger {
  Wide value;

  SmallInteger() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  SOFIE_HOST_DEVICE explicit constexpr SmallInteger(T x)
      : value(Kept(static_cast<uint32_t>(static_cast<int64_t>(x)))) {}
  SOFIE_HOST_DEVICE static constexpr SmallInteger FromBits(uint8_t bits) {
    return SmallInteger(bits);
  }

  SOFIE_HOST_DEVICE constexpr operator Wide() const { return value; }  // NOLINT: loses nothing.

 private:
  SOFIE_HOST_DEVICE static constexpr Wide Kept(uint32_t x) {
    constexpr uint32_t kAll = (uint32_t{1} << kBits) - 1;
    const uint32_t low = x & kAll;
    const bool negative = std::is_signed_v<Wide> && (low >> (kBits - 1)) != 0;
    return static_cast<Wide>(negative ? low | ~kAll : low);
  }
};

using Int4 = SmallInteger<4, int8_t>;
using UInt4 = SmallInteger<4, uint8_t>;
using Int2 = SmallInteger<2, int8_t>;
using UInt2 = SmallInteger<2, uint8_t>;

// A byte with several elements, the first in its lowest bits: how inputs, outputs and weights of
// less than 8 bits lie in memory. A view of them points to bytes and has the shape of the elements.
template <class T, int kBits>
struct Packed {
  uint8_t bits;

  // Element `position` of a byte.
  SOFIE_HOST_DEVICE static constexpr T Unpack(uint8_t byte, int64_t position) {
    constexpr uint32_t kAll = (uint32_t{1} << kBits) - 1;
    return T::FromBits(static_cast<uint8_t>(uint32_t{byte} >> (position * kBits) & kAll));
  }
  // The byte of some elements.
  template <class... Elements>
  SOFIE_HOST_DEVICE static constexpr uint8_t Pack(Elements... elements) {
    uint32_t byte = 0;
    int shift = 0;
    ((byte |= BitsOf(elements) << shift, shift += kBits), ...);
    return static_cast<uint8_t>(byte);
  }

 private:
  SOFIE_HOST_DEVICE static constexpr uint32_t BitsOf(T element) {
    constexpr uint32_t kAll = (uint32_t{1} << kBits) - 1;
    if constexpr (std::is_same_v<T, Float4E2M1>) {
      return element.bits;
    } else {
      return static_cast<uint32_t>(element.value) & kAll;
    }
  }
};

using PackedFloat4E2M1 = Packed<Float4E2M1, 4>;
using PackedInt4 = Packed<Int4, 4>;
using PackedUInt4 = Packed<UInt4, 4>;
using PackedInt2 = Packed<Int2, 2>;
using PackedUInt2 = Packed<UInt2, 2>;

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SMALL_FLOAT_H_
