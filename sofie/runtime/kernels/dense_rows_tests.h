// Single rows through dense layers, and precisions below that of floats.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_ROWS_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_ROWS_TESTS_H_

#include <array>
#include <cstdint>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/dense_testing.h"

namespace sofie::kernels::testing {

template <class B>
class DenseRowsTest : public DenseFixture<B> {};
TYPED_TEST_SUITE(DenseRowsTest, TestBackends);

TYPED_TEST(DenseRowsTest, NarrowestInput) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 1, 8, 256>>();
}

// As SharedColumns: of two blocks, each of which stores 128 columns.
TYPED_TEST(DenseRowsTest, SharedColumns) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 64, 128, 256>>();
}

TYPED_TEST(DenseRowsTest, SingleRows) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 20, 32>>();
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 11, 32>>();
}

TYPED_TEST(DenseRowsTest, Panels) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 128, 768>>();
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 448, 384>>();
  this->template AllSizes<DenseShape<1, Precision::kBfloat16, 33, 8 * 37>>();
  this->template AllSizes<DenseShape<1, Precision::kBfloat16, 250, 64>>();
}

TYPED_TEST(DenseRowsTest, SingleRowsNeedNoCombine) {
  this->template InMemory<DenseShape<1, Precision::kFloat32, 12, 8>, PlainRows>(77);
}

TYPED_TEST(DenseRowsTest, RowsMayBeSeveralLoops) {
  this->template InMemory<DenseShape<1, Precision::kFloat32, 60, 8>, RowsOfWindows>(77);
  this->template InMemory<DenseShape<1, Precision::kFloat32, 60, 24>, RowsOfWindows>(1);
}

TYPED_TEST(DenseRowsTest, FewOutputs) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 9, 8>>();
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 32, 16, 16>>();
}

// Several of them share a warp, in small tiles and in large ones.
TYPED_TEST(DenseRowsTest, ShortRows) {
  this->template AllSizes<DenseShape<1, Precision::kFloat32, 4, 16>>();
  this->template Gathered<DenseShape<1, Precision::kFloat32, 4, 16>, Sum<float>>(200, 101);
  this->template Gathered<DenseShape<1, Precision::kBfloat16, 17, 16>, Sum<float>>(200, 101);
}

TYPED_TEST(DenseRowsTest, IsAsAccurateAsFloatArithmetic) {
  const auto errors =
      this->template Gathered<DenseShape<1, Precision::kFloat32, 512, 256>, Sum<float>>(10, 11);
  this->ExpectAsAccurate("512-256, rows", errors);
}

TYPED_TEST(DenseRowsTest, RefusesNoWeight) {
  using Shape = DenseShape<1, Precision::kFloat32, 12, 8>;
  Array<TypeParam, float> x(12);
  Array<TypeParam, float> out(8);
  EXPECT_THROW(Launcher<TypeParam>(*this->context_)
                   .template Dense<Shape>(
                       std::array<int64_t, 1>{1}, {},
                       [&]<class I>() { return PlainRows<I>{x.data(), out.data(), 12, 8}; }),
               ArgumentError);
}

template <class B>
class DensePrecisionTest : public DenseFixture<B> {};
TYPED_TEST_SUITE(DensePrecisionTest, TestBackends);

TYPED_TEST(DensePrecisionTest, WidestInput) {
  this->template AllSizes<DenseShape<16, Precision::kBfloat16, 512, 256>>();
}
TYPED_TEST(DensePrecisionTest, UnevenWidthsOfWarpgroups) {
  this->template AllSizes<DenseShape<16, Precision::kTf32, 1, 192, 64>>();
}
TYPED_TEST(DensePrecisionTest, Tf32) {
  this->template AllSizes<DenseShape<16, Precision::kTf32, 64, 128, 96>, Max<float>>();
  this->template AllSizes<DenseShape<16, Precision::kTf32, 256, 256, 256>>();
}
TYPED_TEST(DensePrecisionTest, Bfloat16) {
  this->template AllSizes<DenseShape<16, Precision::kBfloat16, 64, 128, 96>>();
  this->template AllSizes<DenseShape<16, Precision::kBfloat16, 256, 256, 256>, Max<float>>();
}
TYPED_TEST(DensePrecisionTest, Float16) {
  this->template AllSizes<DenseShape<16, Precision::kFloat16, 64, 128, 64>>();
}

// What rounding the factors leaves: the precision asked for reaches the tensor cores.
TYPED_TEST(DensePrecisionTest, RoundsAsFarAsItMay) {
  const auto bf16 =
      this->template Gathered<DenseShape<16, Precision::kBfloat16, 64, 128, 96>, Sum<float>>(10,
                                                                                             11);
  const auto fp16 =
      this->template Gathered<DenseShape<16, Precision::kFloat16, 64, 128, 64>, Sum<float>>(10, 11);
  if (!TypeParam::kGpu) return;
  EXPECT_GT(bf16.kernel, 4 * fp16.kernel);
  EXPECT_GT(fp16.kernel, 10 * fp16.float_loop);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_ROWS_TESTS_H_
