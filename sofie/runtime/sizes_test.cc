#include "sofie/runtime/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace sofie {

TEST(SizesTest, DivisionRoundsDown) {
  EXPECT_EQ(FloorDiv<int64_t>(7, 2), 3);
  EXPECT_EQ(FloorDiv<int64_t>(-7, 2), -4);
  EXPECT_EQ(FloorDiv<int64_t>(-8, 2), -4);
  EXPECT_EQ(FloorDiv(int64_t{-1}, 2), -1);
  EXPECT_EQ(FloorDiv<int64_t>(7, -2), -4);
}

TEST(SizesTest, TheRemainderHasTheSignOfTheDivisor) {
  EXPECT_EQ(FloorMod<int64_t>(7, 4), 3);
  EXPECT_EQ(FloorMod<int64_t>(-7, 4), 1);
  EXPECT_EQ(FloorMod<int64_t>(-8, 4), 0);
}

TEST(SizesTest, NothingTrapsForZero) {
  EXPECT_EQ(FloorDiv<int64_t>(7, 0), 0);
  EXPECT_EQ(FloorMod(int64_t{7}, 0), 7);
}

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

TEST(SizesTest, NothingOverflows) {
  const Saturated large = kLargest;
  const Saturated small = kSmallest;
  EXPECT_EQ(large + 1, large);
  EXPECT_EQ(small - 1, small);
  EXPECT_EQ(-small, large);
  EXPECT_EQ(large * 2, large);
  EXPECT_EQ(large * -2, small);
  EXPECT_EQ(small * -1, large);
  EXPECT_EQ(small / -1, large);
  EXPECT_EQ(FloorDiv(small, -1), large);
  EXPECT_EQ(FloorMod(small, -1), 0);
  EXPECT_EQ(large - small, large);
  EXPECT_EQ(2 * Saturated(3) - 1, 5);
}

TEST(SizesTest, Steps) {
  EXPECT_EQ(Steps(0, 5, 1), 5);
  EXPECT_EQ(Steps(10, -3, -4), 4);
  EXPECT_EQ(Steps(3, 2, 1), 0);
  EXPECT_EQ(Steps(3, 2, 0), 0);
  EXPECT_EQ(Steps(kLargest - 5, kLargest, 2), 3);
  EXPECT_EQ(Steps(kSmallest, kLargest, 1), kLargest);
  EXPECT_EQ(Steps(0.0, 1.0, 0.25), 4);
  EXPECT_EQ(Steps(0.5, -2.0, -0.75), 4);
  EXPECT_EQ(Steps(1.0, 0.0, 1.0), 0);
  EXPECT_EQ(Steps(0.0, 1.0, 0.0), 0);
  EXPECT_EQ(Steps(0.0, std::numeric_limits<double>::quiet_NaN(), 1.0), 0);
}

TEST(SizesTest, Floor) {
  EXPECT_EQ(Floor(2.5), 2);
  EXPECT_EQ(Floor(-2.5), -3);
  EXPECT_EQ(Floor(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_GT(Floor(std::numeric_limits<double>::infinity()), int64_t{1} << 62);
}

}  // namespace sofie
