#include "sofie/runtime/small_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sofie/runtime/dtype.h"

namespace sofie {
namespace {

// The formats as ONNX's page of float8 and float4 defines them.
struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias;
  double largest;
  bool has_infinity;
  bool has_nan;
  bool has_negative_zero;
};
template <class T>
constexpr Format kFormat = {};
template <>
constexpr Format kFormat<Float8E4M3FN> = {4, 3, 7, 448, false, true, true};
template <>
constexpr Format kFormat<Float8E4M3FNUZ> = {4, 3, 8, 240, false, true, false};
template <>
constexpr Format kFormat<Float8E5M2> = {5, 2, 15, 57344, true, true, true};
template <>
constexpr Format kFormat<Float8E5M2FNUZ> = {5, 2, 16, 57344, false, true, false};
template <>
constexpr Format kFormat<Float4E2M1> = {2, 1, 1, 6, false, false, true};

// The value of a pattern: a number if that is not above the largest, else infinity or NaN.
template <class T>
double ValueOf(uint32_t bits) {
  const Format f = kFormat<T>;
  const uint32_t exponent = bits >> f.fraction_bits & ((1u << f.exponent_bits) - 1);
  const uint32_t fraction = bits & ((1u << f.fraction_bits) - 1);
  const bool negative = (bits >> (f.exponent_bits + f.fraction_bits) & 1u) != 0;
  if (negative && exponent == 0 && fraction == 0 && !f.has_negative_zero) return NAN;
  const double significand = (exponent == 0 ? 0 : 1) + std::ldexp(fraction, -f.fraction_bits);
  const double value = std::ldexp(significand, static_cast<int>(std::max(exponent, 1u)) - f.bias);
  if (value > f.largest)
    return f.has_infinity && fraction == 0 ? (negative ? -INFINITY : INFINITY) : NAN;
  return negative ? -value : value;
}

bool Same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
class SmallFloatTest : public testing::Test {
 protected:
  static constexpr uint32_t kPatterns = 2u << (kFormat<T>.exponent_bits + kFormat<T>.fraction_bits);
};
using Types = testing::Types<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float4E2M1>;
TYPED_TEST_SUITE(SmallFloatTest, Types);

TYPED_TEST(SmallFloatTest, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < this->kPatterns; ++bits) {
    const float value = TypeParam::FromBits(static_cast<uint8_t>(bits));
    ASSERT_TRUE(Same(value, ValueOf<TypeParam>(bits))) << bits << ": " << value;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value))));
    } else if (std::isfinite(value)) {
      EXPECT_EQ(TypeParam(value).bits, bits);
      EXPECT_EQ(TypeParam(static_cast<double>(value)).bits, bits);
      EXPECT_EQ(TypeParam::From(value, false).bits, bits);
    }
  }
}

TYPED_TEST(SmallFloatTest, BetweenNeighboursTheNearestWinsAndOfTwoTheEvenOne) {
  for (uint32_t low = 0; low + 1 < this->kPatterns / 2; ++low) {
    const auto below = static_cast<float>(ValueOf<TypeParam>(low));
    const auto above = static_cast<float>(ValueOf<TypeParam>(low + 1));
    if (!std::isfinite(below) || !std::isfinite(above)) continue;
    const float middle = (below + above) / 2;
    for (const float sign : {1.0f, -1.0f}) {
      const auto rounded = [&](auto x) { return sign * static_cast<float>(TypeParam(sign * x)); };
      const float even = low % 2 == 0 ? below : above;
      ASSERT_EQ(rounded(middle), even);
      ASSERT_EQ(rounded(std::nextafter(middle, 0.0f)), below);
      ASSERT_EQ(rounded(std::nextafter(middle, INFINITY)), above);
      ASSERT_EQ(rounded(std::nextafter(double{middle}, 0.0)), below);
      ASSERT_EQ(rounded(std::nextafter(double{middle}, 1e9)), above);
    }
  }
}

TYPED_TEST(SmallFloatTest, WhatIsTooLargeSaturatesOrDoesNot) {
  const Format f = kFormat<TypeParam>;
  for (const float x : {static_cast<float>(f.largest) * 1.5f, 1e30f, INFINITY}) {
    for (const float sign : {1.0f, -1.0f}) {
      EXPECT_EQ(static_cast<float>(TypeParam(sign * x)), sign * f.largest);
      const float free = TypeParam::From(sign * x, false);
      if (f.has_infinity) {
        EXPECT_EQ(free, sign * INFINITY);
      } else if (f.has_nan) {
        EXPECT_TRUE(std::isnan(free));
      } else {
        EXPECT_EQ(free, sign * f.largest);
      }
    }
  }
  const float nan = TypeParam(NAN);
  EXPECT_TRUE(f.has_nan ? std::isnan(nan) : nan == 0);
  EXPECT_EQ(std::signbit(static_cast<float>(TypeParam(-0.0f))), f.has_negative_zero);
  EXPECT_EQ(std::signbit(static_cast<float>(TypeParam(-1e-30f))), f.has_negative_zero);
  EXPECT_EQ(static_cast<float>(TypeParam(int8_t{-3})), -3);
  static_assert(static_cast<float>(TypeParam(1.5f)) == 1.5f);
}

TEST(Float8E8M0Test, EveryPatternIsAPowerOfTwo) {
  for (int bits = 0; bits < 255; ++bits) {
    const float value = Float8E8M0::FromBits(static_cast<uint8_t>(bits));
    ASSERT_EQ(value, std::ldexp(1.0f, bits - 127));
    if (bits > 0) {
      ASSERT_EQ(Float8E8M0(value).bits, bits);
    }
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(Float8E8M0::FromBits(255))));
}

TEST(Float8E8M0Test, RoundsAsAsked) {
  const auto rounded = [](float x, Rounding mode, bool saturate = true) {
    return static_cast<float>(Float8E8M0::From(x, saturate, mode));
  };
  EXPECT_EQ(rounded(5, Rounding::kUp), 8);
  EXPECT_EQ(rounded(5, Rounding::kDown), 4);
  EXPECT_EQ(rounded(5, Rounding::kNearest), 4);
  EXPECT_EQ(rounded(6, Rounding::kNearest), 8);
  EXPECT_EQ(rounded(-4, Rounding::kUp), 4);
  EXPECT_EQ(rounded(3e38f, Rounding::kUp), 0x1p127f);
  EXPECT_TRUE(std::isnan(rounded(3e38f, Rounding::kUp, false)));
  EXPECT_EQ(rounded(3e38f, Rounding::kDown, false), 0x1p127f);
  EXPECT_TRUE(std::isnan(rounded(INFINITY, Rounding::kUp)));
  EXPECT_TRUE(std::isnan(rounded(NAN, Rounding::kDown)));
}

TEST(SmallIntegerTest, KeepsTheLowBits) {
  for (int x = -300; x < 300; ++x) {
    const int four = (x & 15) < 8 ? x & 15 : (x & 15) - 16;
    const int two = (x & 3) < 2 ? x & 3 : (x & 3) - 4;
    ASSERT_EQ(int{Int4(x)}, four);
    ASSERT_EQ(int{UInt4(x)}, x & 15);
    ASSERT_EQ(int{Int2(x)}, two);
    ASSERT_EQ(int{UInt2(x)}, x & 3);
  }
  EXPECT_EQ(int{Int4(-2.9f)}, -2);
  EXPECT_EQ(int{UInt4(7.9)}, 7);
}

TEST(PackedTest, EveryByteComesApartAndTogether) {
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(i);
    EXPECT_EQ(int{PackedUInt4::Unpack(byte, 0)}, i & 15);
    EXPECT_EQ(int{PackedUInt4::Unpack(byte, 1)}, i >> 4);
    EXPECT_EQ(PackedInt4::Pack(PackedInt4::Unpack(byte, 0), PackedInt4::Unpack(byte, 1)), byte);
    EXPECT_EQ(PackedFloat4E2M1::Pack(PackedFloat4E2M1::Unpack(byte, 0),
                                     PackedFloat4E2M1::Unpack(byte, 1)),
              byte);
    EXPECT_EQ(int{PackedUInt2::Unpack(byte, 3)}, i >> 6);
    EXPECT_EQ(PackedInt2::Pack(PackedInt2::Unpack(byte, 0), PackedInt2::Unpack(byte, 1),
                               PackedInt2::Unpack(byte, 2), PackedInt2::Unpack(byte, 3)),
              byte);
  }
}

TEST(PackedTest, BytesAreRoundedUp) {
  EXPECT_EQ(BytesOf(DType::kInt4, 0), 0u);
  EXPECT_EQ(BytesOf(DType::kInt4, 5), 3u);
  EXPECT_EQ(BytesOf(DType::kUInt2, 5), 2u);
  EXPECT_EQ(BytesOf(DType::kFloat8E5M2, 5), 5u);
  EXPECT_EQ(BytesOf(DType::kFloat64, 5), 40u);
  EXPECT_EQ(kDTypeOf<const PackedInt4>, DType::kInt4);
}

}  // namespace
}  // namespace sofie
