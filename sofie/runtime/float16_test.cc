#include "sofie/runtime/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sofie/runtime/dtype.h"

namespace sofie {
namespace {

// The formats by their definition, in double precision, which holds all that is rounded here.
template <class T>
struct Format;
template <>
struct Format<Float16> {
  static constexpr int kFraction = 10;
  static constexpr int kLowestExponent = -14;
  static constexpr double kLargest = 65504;
};
template <>
struct Format<BFloat16> {
  static constexpr int kFraction = 7;
  static constexpr int kLowestExponent = -126;
  static constexpr double kLargest = 0x1.fep127;
};

// The value of a bit pattern.
template <class T>
double ValueOf(uint16_t bits) {
  using F = Format<T>;
  const int exponent = (bits & 0x7fff) >> F::kFraction;
  const int fraction = bits & ((1 << F::kFraction) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (0x7fff >> F::kFraction)) {
    return fraction != 0 ? std::nan("") : sign * INFINITY;
  }
  const int significand = exponent == 0 ? fraction : fraction + (1 << F::kFraction);
  const int shift = (exponent == 0 ? 1 : exponent) - 1 + F::kLowestExponent - F::kFraction;
  return sign * std::ldexp(significand, shift);
}

// What a number rounds to.
template <class T>
double Rounded(double x) {
  using F = Format<T>;
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), F::kLowestExponent);
  const double result =
      std::ldexp(std::nearbyint(std::ldexp(x, F::kFraction - exponent)), exponent - F::kFraction);
  return std::abs(result) > F::kLargest ? std::copysign(INFINITY, x) : result;
}

// Equal, zeros with their sign, or both NaN.
bool Same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
class Float16Test : public testing::Test {};
using Types = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Float16Test, Types);

TYPED_TEST(Float16Test, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = TypeParam::FromBits(static_cast<uint16_t>(bits));
    const float wide = value;
    ASSERT_TRUE(Same(wide, ValueOf<TypeParam>(value.bits))) << std::hex << bits;
    if (!std::isnan(wide)) {
      ASSERT_EQ(TypeParam(wide).bits, bits);
      ASSERT_EQ(TypeParam(static_cast<double>(wide)).bits, bits);
    } else {
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(wide)))) << std::hex << bits;
    }
  }
}

TYPED_TEST(Float16Test, BetweenNeighboursTheNearestWinsAndOfTwoTheEvenOne) {
  for (const uint16_t sign : {0x0000, 0x8000}) {
    for (uint32_t low = 0; low < 0x7fff; ++low) {
      const double below = ValueOf<TypeParam>(static_cast<uint16_t>(low | sign));
      const double above = ValueOf<TypeParam>(static_cast<uint16_t>((low + 1) | sign));
      if (!std::isfinite(below) || !std::isfinite(above)) continue;
      const double middle = (below + above) / 2;
      const auto even = static_cast<uint16_t>((low + (low & 1)) | sign);
      ASSERT_EQ(TypeParam(middle).bits, even) << middle;
      // So close to the middle that a float would take it for the middle.
      ASSERT_EQ(TypeParam(std::nextafter(middle, below)).bits, low | sign) << middle;
      ASSERT_EQ(TypeParam(std::nextafter(middle, above)).bits, (low + 1) | sign) << middle;
      const auto single = static_cast<float>(middle);
      if (static_cast<double>(single) != middle) continue;  // Below the least float.
      ASSERT_EQ(TypeParam(single).bits, even) << middle;
      ASSERT_EQ(TypeParam(std::nextafter(single, static_cast<float>(below))).bits, low | sign);
      ASSERT_EQ(TypeParam(std::nextafter(single, static_cast<float>(above))).bits,
                (low + 1) | sign);
    }
  }
}

TYPED_TEST(Float16Test, FloatsRoundAsTheFormatSays) {
  // A prime stride meets every exponent with all kinds of fractions.
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    ASSERT_TRUE(Same(static_cast<float>(TypeParam(x)), Rounded<TypeParam>(x))) << x;
  }
}

TYPED_TEST(Float16Test, LimitsOverflowToInfinity) {
  const double largest = Format<TypeParam>::kLargest;
  const double step = largest - ValueOf<TypeParam>(TypeParam(largest).bits - 1);
  const double infinite = largest + step / 2;
  const auto rounded = [](auto x) { return static_cast<float>(TypeParam(x)); };
  EXPECT_EQ(rounded(infinite), INFINITY);
  EXPECT_EQ(rounded(-infinite), -INFINITY);
  EXPECT_EQ(rounded(std::nextafter(infinite, 0)), largest);
  EXPECT_EQ(rounded(-std::nextafter(infinite, 0)), -largest);
  EXPECT_EQ(rounded(std::numeric_limits<double>::max()), INFINITY);
  EXPECT_EQ(rounded(INFINITY), INFINITY);
  EXPECT_EQ(rounded(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_TRUE(std::signbit(rounded(-std::numeric_limits<double>::denorm_min())));
  EXPECT_TRUE(std::isnan(rounded(std::nan(""))));
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::signaling_NaN())));
}

TYPED_TEST(Float16Test, IntegersRoundThroughFloat) {
  EXPECT_EQ(static_cast<float>(TypeParam(3)), 3);
  EXPECT_EQ(static_cast<float>(TypeParam(true)), 1);
  EXPECT_EQ(static_cast<float>(TypeParam(int64_t{-4096})), -4096);
  EXPECT_EQ(static_cast<float>(TypeParam(uint8_t{255})), 255);
  const float large = static_cast<float>(TypeParam(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(large, (std::is_same_v<TypeParam, Float16> ? INFINITY : 0x1p64f));
}

TYPED_TEST(Float16Test, ConstantsAreRoundedByTheCompiler) {
  static_assert(static_cast<float>(TypeParam(1.5f)) == 1.5f);
  static_assert(static_cast<float>(TypeParam(-0x1p-20)) == -0x1p-20f);
  static_assert(TypeParam(std::numeric_limits<float>::infinity()).bits ==
                TypeParam(std::numeric_limits<double>::infinity()).bits);
  constexpr TypeParam kThird(1.0 / 3);
  EXPECT_EQ(kThird.bits, TypeParam(1.0f / 3).bits);
}

TEST(Float16Types, HaveADType) {
  EXPECT_EQ(kDTypeOf<Float16>, DType::kFloat16);
  EXPECT_EQ(kDTypeOf<const BFloat16>, DType::kBFloat16);
}

}  // namespace
}  // namespace sofie
