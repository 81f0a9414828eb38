#include "sofie/runtime/view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "sofie/runtime/device.h"
#include "sofie/runtime/dtype.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

TEST(ShapeTest, ElementsAndText) {
  EXPECT_EQ(Shape({2, 3}).elements(), 6);
  EXPECT_EQ(ToString(Shape({2, 3})), "[2, 3]");
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(ToString(Shape()), "[]");
  EXPECT_EQ(Shape({5, 0, int64_t{1} << 62, 8}).elements(), 0);
  EXPECT_EQ(Shape({int64_t{1} << 40, int64_t{1} << 40}).elements(),
            std::numeric_limits<int64_t>::max());
}

TEST(ShapeTest, Equality) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_NE(Shape({1}), Shape());
}

TEST(ShapeTest, RankIsLimited) {
  EXPECT_EQ(Shape({1, 1, 1, 1, 1, 1, 1, 2}).rank(), 8);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

TEST(ViewTest, ConvertsToConstAndTensorView) {
  float data[6] = {};
  const View<float> view{data, {2, 3}, Memory::kDevice};
  const View<const float> const_view = view;
  EXPECT_EQ(const_view.data, data);
  EXPECT_EQ(const_view.memory, Memory::kDevice);
  const TensorView tensor = const_view;
  EXPECT_EQ(tensor.dtype, DType::kFloat32);
  EXPECT_EQ(tensor.shape, Shape({2, 3}));
  EXPECT_EQ(tensor.memory, Memory::kDevice);
  EXPECT_EQ(tensor.as<float>().data, data);
  const MutableTensorView mutable_tensor = view;
  EXPECT_EQ(mutable_tensor.data, data);
}

TEST(ViewTest, StridesConvertToo) {
  float data[12] = {};
  const View<float> view{.data = data, .shape = {2, 3}, .strides = {6, 2}};
  const View<const float> const_view = view;
  EXPECT_EQ(const_view.strides, Strides({6, 2}));
  EXPECT_EQ(TensorView(const_view).strides, Strides({6, 2}));
  EXPECT_EQ(TensorView(const_view).as<float>().strides, Strides({6, 2}));
  EXPECT_EQ(MutableTensorView(view).strides, Strides({6, 2}));
}

TEST(StridesTest, Packed) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_TRUE(IsPacked({2, 3}, {}));
  EXPECT_TRUE(IsPacked({2, 3}, {3, 1}));
  EXPECT_FALSE(IsPacked({2, 3}, {4, 1}));
  EXPECT_FALSE(IsPacked({2, 3}, {1, 2}));
  EXPECT_FALSE(IsPacked({2, 3}, {0, 1}));
  // The only element of an axis lies nowhere else.
  EXPECT_TRUE(IsPacked({2, 1, 3}, {3, 77, 1}));
  EXPECT_TRUE(IsPacked({1, 3}, {0, 1}));
  EXPECT_TRUE(IsPacked({0, 3}, {5, 7}));
  EXPECT_FALSE(IsPacked({2, kLarge, kLarge}, {1, kLarge, 1}));
}

TEST(StridesTest, ElementsSpanned) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_EQ(ElementsSpanned({2, 3}, {}), 6);
  EXPECT_EQ(ElementsSpanned({2, 3}, {3, 1}), 6);
  EXPECT_EQ(ElementsSpanned({2, 3}, {5, 1}), 8);
  EXPECT_EQ(ElementsSpanned({2, 3}, {1, 10}), 22);
  EXPECT_EQ(ElementsSpanned({2, 3}, {0, 0}), 1);
  EXPECT_EQ(ElementsSpanned({1, 3}, {99, 1}), 3);
  EXPECT_EQ(ElementsSpanned({0, 3}, {5, 1}), 0);
  EXPECT_EQ(ElementsSpanned({}, {}), 1);
  EXPECT_EQ(ElementsSpanned({3, 3}, {kLarge, 1}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ElementsSpanned({2, 2}, {kLarge, kLarge}), std::numeric_limits<int64_t>::max());
}

TEST(DTypeTest, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kFloat16), 2u);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2u);
  EXPECT_EQ(SizeOf(DType::kBool), sizeof(bool));
  EXPECT_EQ(SizeOf(kDTypeOf<double>), sizeof(double));
  EXPECT_EQ(SizeOf(kDTypeOf<int16_t>), sizeof(int16_t));
  EXPECT_STREQ(NameOf(kDTypeOf<const float>), "float32");
  EXPECT_STREQ(NameOf(kDTypeOf<uint64_t>), "uint64");
  EXPECT_STREQ(NameOf(kDTypeOf<int8_t>), "int8");
  EXPECT_STREQ(NameOf(DType::kBFloat16), "bfloat16");
}

TEST(DeviceTest, Text) {
  EXPECT_EQ(Device::Cpu().ToString(), "cpu");
  EXPECT_EQ(Device::OpenMp().ToString(), "openmp");
  EXPECT_EQ(Device::OpenMp(4).ToString(), "openmp (4 threads)");
  EXPECT_EQ(Device::Cuda(2).ToString(), "cuda:2");
}

TEST(DeviceTest, RefusesNegativeArguments) {
  EXPECT_THROW(Device::OpenMp(-1), ArgumentError);
  EXPECT_THROW(Device::Cuda(-1), ArgumentError);
}

}  // namespace
}  // namespace sofie
