// Groups of rows through chains of layers, in floats.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_TESTS_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sofie/runtime/kernels/dense_testing.h"

namespace sofie::kernels::testing {

template <class B>
class DenseTest : public DenseFixture<B> {};
TYPED_TEST_SUITE(DenseTest, TestBackends);

TYPED_TEST(DenseTest, NarrowLayers) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 64, 64, 64>>();
}
TYPED_TEST(DenseTest, MiddleLayers) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 128, 128, 128>, Max<float>>();
}
TYPED_TEST(DenseTest, WideLayers) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 256, 256, 256>>();
}
TYPED_TEST(DenseTest, UnevenWidths) {
  this->template AllSizes<DenseShape<32, Precision::kFloat32, 24, 40, 8>, Max<float>>();
}
TYPED_TEST(DenseTest, FourLayers) {
  this->template AllSizes<DenseShape<32, Precision::kFloat32, 100, 72, 256, 16, 48>>();
}
TYPED_TEST(DenseTest, WidestInput) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 512, 32>, Max<float>>();
}
TYPED_TEST(DenseTest, UnevenWidthsOfWarpgroups) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 37, 64, 256, 192>>();
}

// On Hopper the blocks of a cluster share the columns, for few groups: here three, whose rows go to
// the other blocks twice; in MiddleLayers and WideLayers two and four.
TYPED_TEST(DenseTest, SharedColumns) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 48, 192, 192, 192>, Max<float>>();
}

TYPED_TEST(DenseTest, FewOutputs) {
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 256, 8, 16>>();
}

// Of the GPU's products of split operands in particular.
TYPED_TEST(DenseTest, IsAsAccurateAsFloatArithmetic) {
  this->ExpectAsAccurate(
      "64-64-64",
      this->template Gathered<DenseShape<16, Precision::kFloat32, 64, 64, 64>, Sum<float>>(10, 11));
  this->ExpectAsAccurate(
      "256-256-256",
      this->template Gathered<DenseShape<16, Precision::kFloat32, 256, 256, 256>, Sum<float>>(10,
                                                                                              11));
  this->ExpectAsAccurate(
      "256-256-256, many",
      this->template Gathered<DenseShape<16, Precision::kFloat32, 256, 256, 256>, Sum<float>>(100,
                                                                                              30));
}

TYPED_TEST(DenseTest, SixtyFourBitIndices) {
  this->context_->set_wide(true);
  this->template AllSizes<DenseShape<16, Precision::kFloat32, 20, 32, 64>>();
}

TYPED_TEST(DenseTest, NanReachesItsGroupOnly) {
  using Shape = DenseShape<16, Precision::kFloat32, 32, 32, 32>;
  const int64_t groups = 40;
  std::vector<float> x = RandomVector<float>(groups * 16 * 32, 74);
  x[(17 * 16 + 5) * 32 + 9] = std::numeric_limits<float>::quiet_NaN();
  std::vector<int64_t> index(groups * 16);
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int64_t>(i);
  DenseLayers<TypeParam, Shape> layers({});
  Array<TypeParam, float> x_array(x);
  Array<TypeParam, int64_t> index_array(index);
  Array<TypeParam, float> out(groups * Shape::kOutput);
  Launcher<TypeParam>(*this->context_)
      .template Dense<Shape>(std::array<int64_t, 2>{1, groups}, layers.layers(), [&]<class I>() {
        return GatheredRows<I, Max<float>>{
            x_array.data(), index_array.data(), out.data(), 1, static_cast<I>(groups), 16, 32, 32};
      });
  const std::vector<float>& got = out.Read(this->context_);
  for (int64_t i = 0; i < groups * 32; ++i) {
    ASSERT_EQ(std::isnan(got[i]), i / 32 == 17) << i / 32 << ", " << i % 32;
  }
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_TESTS_H_
