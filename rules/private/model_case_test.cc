#include "rules/private/model_case.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sofie {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
CaseTensor Tensor(const Shape& shape, const std::vector<T>& values) {
  CaseTensor tensor{kDTypeOf<T>, shape, std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

ExpectedOutput Floats(const Shape& shape, const std::vector<float>& values) {
  return {Tensor<float>(shape, values), 1e-5, 1e-2, {1}};
}

std::string CompareFloats(const std::vector<float>& actual, const std::vector<float>& expected) {
  const Shape shape{2, static_cast<int64_t>(actual.size()) / 2};
  return Compare(Tensor<float>(shape, actual).view(), Floats(shape, expected));
}

TEST(Compare, TakesTheSame) {
  EXPECT_EQ(CompareFloats({1, 2, 3, 4}, {1, 2, 3, 4}), "");
  EXPECT_EQ(CompareFloats({0, kNaN, kInfinity, 4}, {0, kNaN, kInfinity, 4}), "");
}

TEST(Compare, HoldsEachRowToItsTolerance) {
  EXPECT_EQ(CompareFloats({100, 100.0005F, 3, 4}, {100, 100, 3, 4}), "");
  EXPECT_NE(CompareFloats({100, 100.005F, 3, 4}, {100, 100, 3, 4}), "");
  // Row 1 is loose.
  EXPECT_EQ(CompareFloats({1, 1, 100, 100.5F}, {1, 1, 100, 100}), "");
  EXPECT_NE(CompareFloats({1, 1, 100, 105}, {1, 1, 100, 100}), "");
  // A row is not excused by a larger one beside it.
  EXPECT_NE(CompareFloats({1e-3F, 0, 1e6F, 1e6F}, {1.1e-3F, 0, 1e6F, 1e6F}), "");
}

TEST(Compare, SeesOneWrongElementInALongRow) {
  std::vector<float> expected(20000, 1.0F);
  std::vector<float> actual = expected;
  // Of the row's norm this is 5e-7.
  actual[7] = 1.00005F;
  EXPECT_NE(CompareFloats(actual, expected).find("element 7"), std::string::npos);
}

TEST(Compare, WantsNaNsAndInfinitiesInPlace) {
  EXPECT_NE(CompareFloats({1, kNaN, 3, 4}, {1, 2, 3, 4}), "");
  EXPECT_NE(CompareFloats({1, 2, 3, 4}, {1, kNaN, 3, 4}), "");
  EXPECT_NE(CompareFloats({1, kInfinity, 3, 4}, {1, -kInfinity, 3, 4}), "");
}

TEST(Compare, TakesRoundingErrorsForZeroOnly) {
  EXPECT_EQ(CompareFloats({1e-12F, 0, 3, 4}, {0, 0, 3, 4}), "");
  EXPECT_NE(CompareFloats({1e-3F, 0, 3, 4}, {0, 0, 3, 4}), "");
}

TEST(Compare, WantsIntegersEqual) {
  const ExpectedOutput expected{Tensor<int64_t>({2}, {1, (int64_t{1} << 60) + 1}), 0, 1e-2, {}};
  EXPECT_EQ(Compare(Tensor<int64_t>({2}, {1, (int64_t{1} << 60) + 1}).view(), expected), "");
  EXPECT_NE(Compare(Tensor<int64_t>({2}, {1, int64_t{1} << 60}).view(), expected), "");
}

TEST(Compare, WantsTheShapeAndTheType) {
  EXPECT_EQ(Compare(Tensor<float>({2, 1}, {1, 2}).view(), Floats({2}, {1, 2})),
            "shape [2, 1], not [2]");
  EXPECT_EQ(Compare(Tensor<int32_t>({2}, {1, 2}).view(), Floats({2}, {1, 2})),
            "dtype int32, not float32");
}

TEST(Compare, ReadsHalves) {
  const auto half = [](std::vector<uint16_t> bits) {
    CaseTensor tensor = Tensor<uint16_t>({static_cast<int64_t>(bits.size())}, bits);
    tensor.dtype = DType::kFloat16;
    return tensor;
  };
  // 1, -2, the smallest subnormal, infinity.
  const ExpectedOutput expected{half({0x3c00, 0xc000, 0x0001, 0x7c00}), 2e-3, 1e-2, {}};
  EXPECT_EQ(Compare(half({0x3c01, 0xc000, 0x0001, 0x7c00}).view(), expected), "");
  EXPECT_NE(Compare(half({0x3c10, 0xc000, 0x0001, 0x7c00}).view(), expected), "");
  EXPECT_NE(Compare(half({0x3c00, 0xc000, 0x0001, 0xfc00}).view(), expected), "");
}

}  // namespace
}  // namespace sofie
