#ifndef SOFIE_RUNTIME_KERNELS_MATH_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_MATH_TESTS_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// out[i] = Function(a[i], b[i]), on the backend.
template <class I, class T, class Function>
struct Apply {
  const T* a;
  const T* b;
  T* out;
  ALPAKA_FN_ACC void operator()(I i) const { out[i] = Function()(a[i], b[i]); }
};

// The functions as types; b is ignored where one argument will do.
#define SOFIE_TEST_FUNCTION(Name, expression)                     \
  struct Name {                                                   \
    template <class T>                                            \
    ALPAKA_FN_ACC T operator()(T a, [[maybe_unused]] T b) const { \
      return expression;                                          \
    }                                                             \
  }
SOFIE_TEST_FUNCTION(CallMaximum, Maximum(a, b));
SOFIE_TEST_FUNCTION(CallMinimum, Minimum(a, b));
SOFIE_TEST_FUNCTION(CallRelu, Relu(a));
SOFIE_TEST_FUNCTION(CallAbs, Abs(a));
SOFIE_TEST_FUNCTION(CallSign, Sign(a));
SOFIE_TEST_FUNCTION(CallRound, Round(a));
SOFIE_TEST_FUNCTION(CallSigmoid, Sigmoid(a));
SOFIE_TEST_FUNCTION(CallSoftplus, Softplus(a));
SOFIE_TEST_FUNCTION(CallElu, Elu(a, T{1}));
SOFIE_TEST_FUNCTION(CallGelu, Gelu(a));
SOFIE_TEST_FUNCTION(CallGeluTanh, GeluTanh(a));
SOFIE_TEST_FUNCTION(CallPow, Pow(a, b));
SOFIE_TEST_FUNCTION(CallFloorMod, FloorMod(a, b));
SOFIE_TEST_FUNCTION(CallTruncMod, TruncMod(a, b));
SOFIE_TEST_FUNCTION(CallDivide, Divide(a, b));
SOFIE_TEST_FUNCTION(CallFloorDiv, FloorDiv(a, b));
SOFIE_TEST_FUNCTION(CallWrapIndex, WrapIndex(a, b));
SOFIE_TEST_FUNCTION(CallClampIndex, static_cast<T>(ClampIndex(a, static_cast<int64_t>(b))));
SOFIE_TEST_FUNCTION(CallReflect, Reflect(a, T{-0.5}, b));
SOFIE_TEST_FUNCTION(CallClip, Clip(a, T{-1}, b));
#undef SOFIE_TEST_FUNCTION

template <class B>
class MathTest : public ::testing::Test {
 protected:
  template <class Function, class T>
  std::vector<T> Call(const std::vector<T>& a, const std::vector<T>& b) {
    Array<B, T> a_array(a);
    Array<B, T> b_array(b);
    Array<B, T> out(static_cast<int64_t>(a.size()));
    Launcher<B>(*context_).Pointwise(
        std::array<int64_t, 1>{static_cast<int64_t>(a.size())}, [&]<class I>() {
          return Apply<I, T, Function>{a_array.data(), b_array.data(), out.data()};
        });
    return out.Read(context_);
  }
  template <class Function, class T>
  std::vector<T> Call(const std::vector<T>& a) {
    return Call<Function>(a, a);
  }

  // Equal, or both NaN; within `tolerance` of it if that is not 0.
  static void ExpectEach(const std::vector<float>& got, const std::vector<double>& expected,
                         double tolerance = 0) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
      } else if (std::isinf(expected[i])) {
        EXPECT_EQ(got[i], expected[i]) << i;
      } else {
        EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
      }
    }
  }

  static constexpr float kInf = std::numeric_limits<float>::infinity();
  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> points_ = {-kInf, -200, -20,  -3, -1, -0.5f, -1e-6f, 0,   1e-6f,
                                      0.5f,  1,    2.5f, 3,  20, 200,   kInf,   kNaN};

  // f at points_, in double precision.
  template <class Function>
  std::vector<double> Reference(const Function& f) const {
    std::vector<double> values;
    for (const float x : points_) values.push_back(f(static_cast<double>(x)));
    return values;
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(MathTest, TestBackends);

TYPED_TEST(MathTest, NaNPropagates) {
  const float nan = this->kNaN;
  const float inf = this->kInf;
  const std::vector<float> a = {1, nan, 1, nan, -inf, 2};
  const std::vector<float> b = {2, 1, nan, nan, inf, -2};
  const double n = nan;
  this->ExpectEach(this->template Call<CallMaximum>(a, b), {2, n, n, n, inf, 2});
  this->ExpectEach(this->template Call<CallMinimum>(a, b), {1, n, n, n, -inf, -2});
  this->ExpectEach(this->template Call<CallRelu, float>({-1, 0, 2, nan, -inf, inf}),
                   {0, 0, 2, n, 0, inf});
  this->ExpectEach(this->template Call<CallSign, float>({-3, 0, 2, nan, -inf, inf}),
                   {-1, 0, 1, n, -1, 1});
  this->ExpectEach(this->template Call<CallClip, float>({-3, 0.5f, 7, nan}, {2, 2, 2, 2}),
                   {-1, 0.5, 2, n});
}

TYPED_TEST(MathTest, CoordinatesStayInside) {
  const float nan = this->kNaN;
  const float inf = this->kInf;
  this->ExpectEach(this->template Call<CallClampIndex, float>({-inf, -1, 0, 2, 4, 5, inf, nan, 3},
                                                              {5, 5, 5, 5, 5, 5, 5, 5, 0}),
                   {0, 0, 0, 2, 4, 4, 4, 0, 0});
  this->ExpectEach(this->template Call<CallReflect, float>(
                       {-0.5f, 1, 2.5f, 3, 4, 5.5f, -1, -4, 7, 3},
                       {2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, -0.5f}),
                   {-0.5, 1, 2.5, 2, 1, -0.5, 0, 2, 1, -0.5});
}

TYPED_TEST(MathTest, Activations) {
  const auto erf_gelu = [](double x) {
    return std::isinf(x) && x < 0 ? NAN : 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  };
  const auto tanh_gelu = [](double x) {
    return std::isinf(x) && x < 0
               ? NAN
               : 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  this->ExpectEach(this->template Call<CallSigmoid>(this->points_),
                   this->Reference([](double x) { return 1 / (1 + std::exp(-x)); }), 1e-6);
  this->ExpectEach(this->template Call<CallSoftplus>(this->points_),
                   this->Reference([](double x) { return x > 50 ? x : std::log1p(std::exp(x)); }),
                   1e-6);
  this->ExpectEach(this->template Call<CallElu>(this->points_),
                   this->Reference([](double x) { return x < 0 ? std::expm1(x) : x; }), 1e-6);
  this->ExpectEach(this->template Call<CallGelu>(this->points_), this->Reference(erf_gelu), 1e-6);
  this->ExpectEach(this->template Call<CallGeluTanh>(this->points_), this->Reference(tanh_gelu),
                   1e-6);
}

TYPED_TEST(MathTest, RoundsHalvesToEven) {
  this->ExpectEach(this->template Call<CallRound, float>({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f}),
                   {0, 2, 2, -0.0, -2, 2});
}

TYPED_TEST(MathTest, Powers) {
  this->ExpectEach(
      this->template Call<CallPow, float>({3, -3, 2, 0, 2, -8, 4}, {2, 2, 10, 0, -1, 3, 0.5f}),
      {9, 9, 1024, 1, 0.5, -512, 2}, 1e-6);
  EXPECT_EQ((this->template Call<CallPow, int64_t>({3, -3, 2, 0, 2, 1, -1, -1, 7},
                                                   {2, 3, 62, 0, -1, -5, -5, -4, 1})),
            (std::vector<int64_t>{9, -27, int64_t{1} << 62, 1, 0, 1, -1, 1, 7}));
}

TYPED_TEST(MathTest, IntegerDivision) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> a = {7, -7, 7, -7, 6, 0, -1};
  const std::vector<int64_t> b = {2, 2, -2, -2, 3, 5, 3};
  EXPECT_EQ(this->template Call<CallDivide>(a, b), (std::vector<int64_t>{3, -3, -3, 3, 2, 0, 0}));
  EXPECT_EQ(this->template Call<CallFloorDiv>(a, b),
            (std::vector<int64_t>{3, -4, -4, 3, 2, 0, -1}));
  EXPECT_EQ(this->template Call<CallFloorMod>(a, b), (std::vector<int64_t>{1, 1, -1, -1, 0, 0, 2}));
  EXPECT_EQ(this->template Call<CallTruncMod>(a, b),
            (std::vector<int64_t>{1, -1, 1, -1, 0, 0, -1}));
  EXPECT_EQ((this->template Call<CallDivide, int64_t>({lowest, 5}, {-1, 0})),
            (std::vector<int64_t>{lowest, 0}));
  this->ExpectEach(this->template Call<CallFloorMod, float>({5.5f, -5.5f, 5.5f, -6}, {2, 2, -2, 3}),
                   {1.5, 0.5, -0.5, 0});
}

TYPED_TEST(MathTest, Indices) {
  EXPECT_EQ((this->template Call<CallWrapIndex, int64_t>({0, 4, -1, -5, 7, -9, 3},
                                                         {5, 5, 5, 5, 5, 5, 0})),
            (std::vector<int64_t>{0, 4, 4, 0, 4, 0, 0}));
  EXPECT_EQ((this->template Call<CallAbs, int64_t>({-3, 3, 0})), (std::vector<int64_t>{3, 3, 0}));
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_MATH_TESTS_H_
