#include "sofie/runtime/slices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sofie/runtime/testing.h"

namespace sofie {
namespace {

TEST(RowsOfSliceTest, FewSlicesOfNearlyEqualSize) {
  const auto up_to = [](int64_t most) { return [=](int64_t rows) { return rows <= most; }; };
  EXPECT_EQ(RowsOfSlice(100, up_to(100)), 100);
  EXPECT_EQ(RowsOfSlice(100, up_to(1000)), 100);
  EXPECT_EQ(RowsOfSlice(100, up_to(99)), 50);
  EXPECT_EQ(RowsOfSlice(100, up_to(40)), 34);
  EXPECT_EQ(RowsOfSlice(100, up_to(1)), 1);
  EXPECT_EQ(RowsOfSlice(1, up_to(1)), 1);
  EXPECT_EQ(RowsOfSlice(100, up_to(0)), 0);
  EXPECT_EQ(RowsOfSlice(int64_t{1} << 40, up_to(3)), 3);
}

TEST(RowsOfSliceTest, WhatDoesNotFitIsNotTaken) {
  EXPECT_EQ(RowsOfSlice(100, [](int64_t rows) { return rows <= 40 && rows != 34; }), 40);
}

constexpr DimInfo kN = {.symbol = 1};
constexpr DimInfo kM = {.symbol = 0};
constexpr DimInfo kDims[] = {kN, {.value = 3}};
constexpr DimInfo kShared[] = {kM, {.value = 3}};
constexpr TensorInfo kInputs[] = {{"x", DType::kFloat32, kDims},
                                  {"shared", DType::kFloat32, kShared},
                                  {"scalar", DType::kFloat32, {}}};

ModelInfo Info() {
  ModelInfo info = ModelOf(kInputs);
  info.batch_symbol = 1;
  return info;
}

TEST(SliceOfTest, InputsWithRowsAreCut) {
  const std::vector<float> data(1000);
  const std::vector<TensorView> inputs = {
      View<const float>{data.data(), {10, 3}},
      View<const float>{data.data(), {10, 3}},
      View<const float>{data.data(), {}},
  };
  const std::vector<TensorView> slices = SliceOf(Info(), inputs, 10, 4, 2);
  EXPECT_EQ(slices[0].data, data.data() + 12);
  EXPECT_EQ(slices[0].shape, (Shape{2, 3}));
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(slices[i].data, data.data());
    EXPECT_EQ(slices[i].shape, inputs[i].shape);
  }
}

TEST(SliceOfTest, StridesAreKept) {
  const std::vector<float> data(1000);
  const auto first = [&](const Strides& strides) {
    const std::vector<TensorView> inputs = {
        View<const float>{data.data(), {10, 3}, Memory::kHost, strides},
        View<const float>{data.data(), {10, 3}},
        View<const float>{data.data(), {}},
    };
    const TensorView slice = SliceOf(Info(), inputs, 10, 4, 2)[0];
    EXPECT_EQ(slice.strides, strides);
    return static_cast<const float*>(slice.data) - data.data();
  };
  EXPECT_EQ(first({5, 1}), 20);
  EXPECT_EQ(first({1, 10}), 4);
  EXPECT_EQ(first({0, 1}), 0);
  EXPECT_EQ(first({kPacked, kPacked}), 12);
}

TEST(SliceOfTest, OutputsWithSeveralElementsOfARow) {
  std::vector<double> data(1000);
  const std::vector<MutableTensorView> outputs = {View<double>{data.data(), {40, 2}}};
  const std::vector<MutableTensorView> slices = SliceOf(outputs, 10, 9, 1);
  EXPECT_EQ(slices[0].data, data.data() + 72);
  EXPECT_EQ(slices[0].shape, (Shape{4, 2}));
}

}  // namespace
}  // namespace sofie
