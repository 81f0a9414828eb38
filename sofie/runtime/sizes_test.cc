#include "sofie/runtime/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sofie {

TEST(SizesTest, DivisionRoundsDown) {
  EXPECT_EQ(FloorDiv<int64_t>(7, 2), 3);
  EXPECT_EQ(FloorDiv<int64_t>(-7, 2), -4);
  EXPECT_EQ(FloorDiv<int64_t>(-8, 2), -4);
  EXPECT_EQ(FloorDiv(int64_t{-1}, 2), -1);
  EXPECT_EQ(FloorDiv<int64_t>(7, -2), -4);
  EXPECT_DOUBLE_EQ(FloorDiv(7.0, 2), 3.5);
}

TEST(SizesTest, TheRemainderHasTheSignOfTheDivisor) {
  EXPECT_EQ(FloorMod<int64_t>(7, 4), 3);
  EXPECT_EQ(FloorMod<int64_t>(-7, 4), 1);
  EXPECT_EQ(FloorMod<int64_t>(-8, 4), 0);
}

TEST(SizesTest, NothingTrapsForZero) {
  EXPECT_EQ(FloorDiv<int64_t>(7, 0), 0);
  EXPECT_EQ(FloorDiv(7.0, 0), 0.0);
  EXPECT_EQ(FloorMod(int64_t{7}, 0), 7);
}

}  // namespace sofie
