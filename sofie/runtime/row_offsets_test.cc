#include "sofie/runtime/row_offsets.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/heap_counter.h"
#include "sofie/runtime/testing.h"

namespace sofie {
namespace {

// Symbols: rows, points of two kinds, and the longest row of each kind.
constexpr DimInfo kPoints[] = {{.symbol = 1}};
constexpr DimInfo kOtherPoints[] = {{.symbol = 2}};
constexpr DimInfo kOffsets[] = {{.symbol = 0, .value = 1}};
constexpr TensorInfo kInputs[] = {{"x", DType::kFloat32, kPoints},
                                  {"y", DType::kFloat32, kOtherPoints},
                                  {"x_offsets", DType::kInt64, kOffsets},
                                  {"y_offsets", DType::kInt64, kOffsets}};
constexpr ReadInfo kReads[] = {{"longest x", 2, DType::kInt64, 3, 1, 1},
                               {"longest y", 3, DType::kInt64, 4, 1, 2}};

void CheckRow(const int64_t* symbols) {
  if (symbols[1] + symbols[2] < 2) {
    throw ShapeError("too few points: " + std::to_string(symbols[1] + symbols[2]));
  }
}

ModelInfo Info(bool checked) {
  ModelInfo info = ModelOf(kInputs);
  info.reads = kReads;
  if (checked) info.check_row = &CheckRow;
  return info;
}

std::array<int64_t, 5> Learned(std::vector<int64_t> x, std::vector<int64_t> y, int64_t points,
                               int64_t other_points, bool checked = true,
                               Memory memory = Memory::kHost) {
  const auto count = static_cast<int64_t>(x.size());
  const std::vector<TensorView> inputs = {
      View<const float>{nullptr, {points}}, View<const float>{nullptr, {other_points}},
      View<const int64_t>{x.data(), {count}, memory}, View<const int64_t>{y.data(), {count}}};
  std::array<int64_t, 5> symbols = {count - 1, points, other_points, -1, -1};
  std::array<int64_t, 5> scratch = {};
  const ModelInfo info = Info(checked);
  const int64_t allocations = HeapAllocations();
  LearnRows(info, inputs, symbols, scratch);
  EXPECT_EQ(HeapAllocations(), allocations);
  return symbols;
}

TEST(RowOffsetsTest, LongestRows) {
  EXPECT_EQ(Learned({0, 2, 7, 7, 9}, {0, 0, 1, 3, 3}, 9, 3),
            (std::array<int64_t, 5>{4, 9, 3, 5, 2}));
  EXPECT_EQ(Learned({0}, {0}, 0, 0), (std::array<int64_t, 5>{0, 0, 0, 0, 0}));
}

TEST(RowOffsetsTest, OffsetsMustFitTheOtherInputs) {
  ExpectThrows<ShapeError>([] { Learned({1, 2}, {0, 3}, 2, 3); },
                           "input 'x_offsets': the first offset is 1; offsets start at 0");
  ExpectThrows<ShapeError>([] { Learned({0, 3, 2}, {0, 1, 2}, 2, 2); },
                           "input 'x_offsets': offset 2 is 2, less than the one before, 3");
  ExpectThrows<ShapeError>([] { Learned({0, 3}, {0, 4}, 3, 5); },
                           "input 'y_offsets': the last offset is 4, but the other inputs have 5 "
                           "points; both must be equal");
}

TEST(RowOffsetsTest, EachRowIsChecked) {
  ExpectThrows<ShapeError>([] { Learned({0, 2, 3}, {0, 1, 1}, 3, 1); }, "row 1: too few points: 1");
  EXPECT_EQ(Learned({0, 2, 3}, {0, 1, 1}, 3, 1, /*checked=*/false)[3], 2);
}

TEST(RowOffsetsTest, TheHostReadsThem) {
  ExpectThrows<ArgumentError>(
      [] { Learned({0, 2}, {0, 1}, 2, 1, true, Memory::kDevice); },
      "input 'x_offsets' is device memory, but the host reads the offsets of rows; give them in "
      "host memory");
}

TEST(RowOffsetsTest, OtherModelsHaveNone) {
  EXPECT_TRUE(HasRowOffsets(Info(true)));
  ModelInfo info = Info(false);
  info.reads = {};
  EXPECT_FALSE(HasRowOffsets(info));
  LearnRows(info, {}, {}, {});
}

}  // namespace
}  // namespace sofie
