#ifndef SOFIE_RUNTIME_KERNELS_GEMM_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_GEMM_TESTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// A product to test, without its data.
struct GemmCase {
  int64_t m, n, k;
  int64_t batch = 1;
  bool trans_a = false;
  bool trans_b = false;
  bool shared_a = false;
  bool shared_b = false;
  int64_t padding = 0;  // beyond each row, and between matrices
  bool bias = false;
  Epilogue epilogue = Epilogue::kNone;
  double alpha = 1;
  double beta = 0;
  Precision precision = Precision::kFloat32;
};

// The largest relative error: that of the sums, or of their rounding to 16 bits.
template <class T>
inline constexpr double kTolerance = 2e-6;
template <>
inline constexpr double kTolerance<double> = 1e-14;
template <>
inline constexpr double kTolerance<Float16> = 5e-4;
template <>
inline constexpr double kTolerance<BFloat16> = 4e-3;

template <class B>
class GemmTest : public ::testing::Test {
 protected:
  // Compares with loops in double precision. What lies between the rows of D must stay as it was.
  template <class T>
  void Check(const GemmCase& c) {
    SCOPED_TRACE("m " + std::to_string(c.m) + ", n " + std::to_string(c.n) + ", k " +
                 std::to_string(c.k) + ", batch " + std::to_string(c.batch) +
                 (c.trans_a ? ", trans_a" : "") + (c.trans_b ? ", trans_b" : "") +
                 (c.shared_a ? ", shared_a" : "") + (c.shared_b ? ", shared_b" : "") +
                 ", padding " + std::to_string(c.padding) + (c.bias ? ", bias" : "") +
                 ", epilogue " + std::to_string(static_cast<int>(c.epilogue)) + ", alpha " +
                 std::to_string(c.alpha) + ", beta " + std::to_string(c.beta) + ", precision " +
                 std::to_string(static_cast<int>(c.precision)));
    GemmArgs<T> args;
    args.m = c.m;
    args.n = c.n;
    args.k = c.k;
    args.batch = c.batch;
    args.trans_a = c.trans_a;
    args.trans_b = c.trans_b;
    args.lda = (c.trans_a ? c.m : c.k) + c.padding;
    args.ldb = (c.trans_b ? c.k : c.n) + c.padding;
    args.ldd = c.n + c.padding;
    const int64_t size_a = (c.trans_a ? c.k : c.m) * args.lda + c.padding;
    const int64_t size_b = (c.trans_b ? c.n : c.k) * args.ldb + c.padding;
    const int64_t size_d = c.m * args.ldd + c.padding;
    args.stride_a = c.shared_a ? 0 : size_a;
    args.stride_b = c.shared_b ? 0 : size_b;
    args.stride_d = size_d;
    args.alpha = static_cast<typename GemmArgs<T>::Scalar>(c.alpha);
    args.beta = static_cast<typename GemmArgs<T>::Scalar>(c.beta);
    args.epilogue = c.epilogue;
    args.precision = c.precision;

    const std::vector<T> a = RandomVector<T>(size_a * (c.shared_a ? 1 : c.batch), 41);
    const std::vector<T> b = RandomVector<T>(size_b * (c.shared_b ? 1 : c.batch), 42);
    std::vector<T> d = RandomVector<T>(size_d * c.batch, 43);
    const std::vector<T> bias = RandomVector<T>(c.n, 44);
    std::vector<double> expected(d.begin(), d.end());
    for (int64_t z = 0; z < c.batch; ++z) {
      const T* const az = a.data() + z * args.stride_a;
      const T* const bz = b.data() + z * args.stride_b;
      for (int64_t i = 0; i < c.m; ++i) {
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < c.k; ++l) {
            sum += double{c.trans_a ? az[l * args.lda + i] : az[i * args.lda + l]} *
                   double{c.trans_b ? bz[j * args.ldb + l] : bz[l * args.ldb + j]};
          }
          double& out = expected[z * args.stride_d + i * args.ldd + j];
          out = c.alpha * sum + (c.beta == 0 ? 0 : c.beta * out) + (c.bias ? double{bias[j]} : 0);
          if (c.epilogue == Epilogue::kRelu) out = std::max(out, 0.0);
          if (c.epilogue == Epilogue::kGelu) out = 0.5 * out * (1 + std::erf(out / std::sqrt(2.0)));
        }
      }
    }
    if (c.beta == 0) {
      // The old D must not be read.
      for (int64_t z = 0; z < c.batch; ++z) {
        for (int64_t i = 0; i < c.m; ++i) {
          for (int64_t j = 0; j < c.n; ++j)
            d[z * args.stride_d + i * args.ldd + j] = static_cast<T>(NAN);
        }
      }
    }

    Array<B, T> a_array(a);
    Array<B, T> b_array(b);
    Array<B, T> d_array(d);
    Array<B, T> bias_array(bias);
    args.a = a_array.data();
    args.b = b_array.data();
    args.d = d_array.data();
    args.bias = c.bias ? bias_array.data() : nullptr;
    Launcher<B>(*context_).Gemm(args);
    const std::vector<T>& got = d_array.Read(context_);
    const double tolerance =
        kTolerance<T> * (std::is_same_v<T, float> ? PrecisionLoss<B>(c.precision) : 1);
    EXPECT_LT(RelativeError(got, expected), tolerance);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 20 * tolerance * (1 + std::sqrt(c.k))) << i;
    }
  }

  template <class T>
  void AllLayouts() {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                  {3, 5, 7},
                                  {33, 17, 65},
                                  {100, 64, 20},
                                  {1, 8, 256},
                                  {129, 1, 31}}) {
      for (const bool trans_a : {false, true}) {
        for (const bool trans_b : {false, true}) {
          for (const int64_t padding : {0, 3}) {
            for (const int64_t batch : {1, 3}) {
              GemmCase c{.m = m, .n = n, .k = k, .batch = batch};
              c.trans_a = trans_a;
              c.trans_b = trans_b;
              c.padding = padding;
              Check<T>(c);
              c.bias = true;
              c.epilogue = Epilogue::kRelu;
              c.shared_b = true;
              Check<T>(c);
              c.shared_b = false;
              c.shared_a = true;
              Check<T>(c);
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }

  template <class T>
  void AllEpilogues() {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu, Epilogue::kGelu}) {
      for (const bool bias : {false, true}) {
        for (const double beta : {0.0, 1.0, -0.5}) {
          for (const double alpha : {1.0, 0.25}) {
            for (const int64_t k : {0, 40}) {
              GemmCase c{.m = 50, .n = 24, .k = k, .batch = 2};
              c.epilogue = epilogue;
              c.bias = bias;
              c.alpha = alpha;
              c.beta = beta;
              Check<T>(c);
              c.padding = 1;
              Check<T>(c);
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(GemmTest, TestBackends);

TYPED_TEST(GemmTest, LayoutsInSinglePrecision) { this->template AllLayouts<float>(); }
TYPED_TEST(GemmTest, LayoutsInDoublePrecision) { this->template AllLayouts<double>(); }
TYPED_TEST(GemmTest, EpiloguesInSinglePrecision) { this->template AllEpilogues<float>(); }
TYPED_TEST(GemmTest, EpiloguesInDoublePrecision) { this->template AllEpilogues<double>(); }
TYPED_TEST(GemmTest, LayoutsInHalfPrecision) { this->template AllLayouts<Float16>(); }
TYPED_TEST(GemmTest, EpiloguesInHalfPrecision) { this->template AllEpilogues<Float16>(); }
TYPED_TEST(GemmTest, LayoutsInBFloat16) { this->template AllLayouts<BFloat16>(); }
TYPED_TEST(GemmTest, EpiloguesInBFloat16) { this->template AllEpilogues<BFloat16>(); }

TYPED_TEST(GemmTest, ManyRows) {
  this->template Check<float>(
      {.m = 20011, .n = 64, .k = 20, .bias = true, .epilogue = Epilogue::kRelu});
  this->template Check<float>({.m = 1, .n = 3000, .k = 17, .bias = true});
}

TYPED_TEST(GemmTest, Precisions) {
  for (const Precision precision : {Precision::kTf32, Precision::kBfloat16, Precision::kFloat16}) {
    for (const int64_t padding : {0, 3}) {
      this->template Check<float>({.m = 110,
                                   .n = 192,
                                   .k = 64,
                                   .batch = 3,
                                   .trans_b = true,
                                   .padding = padding,
                                   .bias = true,
                                   .epilogue = Epilogue::kRelu,
                                   .precision = precision});
      this->template Check<float>(
          {.m = 33, .n = 17, .k = 65, .padding = padding, .precision = precision});
      this->template Check<double>({.m = 40, .n = 24, .k = 32, .precision = precision});
    }
  }
}

TYPED_TEST(GemmTest, LongSums) {
  this->template Check<float>({.m = 17, .n = 19, .k = 10007});
  this->template Check<Float16>({.m = 17, .n = 19, .k = 10007});
  this->template Check<BFloat16>({.m = 300, .n = 600, .k = 700, .beta = 0.5});
}

TYPED_TEST(GemmTest, ManyMatrices) {
  this->template Check<float>({.m = 100, .n = 100, .k = 3, .batch = 70, .trans_b = true});
  this->template Check<float>(
      {.m = 16, .n = 64, .k = 32, .batch = 301, .shared_b = true, .bias = true});
}

TYPED_TEST(GemmTest, NothingToDo) {
  this->template Check<float>({.m = 0, .n = 4, .k = 4});
  this->template Check<float>({.m = 4, .n = 0, .k = 4, .bias = true});
  this->template Check<float>({.m = 4, .n = 4, .k = 4, .batch = 0});
}

TYPED_TEST(GemmTest, RefusesWhatLibrariesCannotTake) {
  Launcher<TypeParam> launcher(*this->context_);
  std::vector<float> host(64);
  GemmArgs<float> good{.a = host.data(), .b = host.data(), .d = host.data()};
  good.m = good.n = good.k = 2;
  good.lda = good.ldb = good.ldd = 2;
  const auto refused = [&](auto change, const std::string& word) {
    GemmArgs<float> bad = good;
    change(bad);
    try {
      launcher.Gemm(bad);
      ADD_FAILURE() << "accepted a bad " << word;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused([](auto& args) { args.m = -1; }, "m = -1");
  refused([](auto& args) { args.n = -2; }, "n = -2");
  refused([](auto& args) { args.k = -3; }, "k = -3");
  refused([](auto& args) { args.batch = -4; }, "batch = -4");
  refused([](auto& args) { args.lda = 1; }, "lda = 1");
  refused([](auto& args) { args.ldb = 1; }, "ldb = 1");
  refused([](auto& args) { args.ldd = 1; }, "ldd = 1");
  refused([](auto& args) { args.batch = 2; }, "stride_d = 0");
  refused([](auto& args) { args.a = nullptr; }, "a is null");
  refused([](auto& args) { args.b = nullptr; }, "b is null");
  refused([](auto& args) { args.d = nullptr; }, "d is null");
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_GEMM_TESTS_H_
