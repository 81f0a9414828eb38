#ifndef SOFIE_RUNTIME_KERNELS_NORMALIZE_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_NORMALIZE_TESTS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

template <class I>
struct SoftmaxAxis {
  using Combine = MaxSumExp<float>;
  const float* x;
  float* out;
  I kept_stride;
  I reduced_stride;

  ALPAKA_FN_ACC float Load(I o, I r) const { return x[o * kept_stride + r * reduced_stride]; }
  ALPAKA_FN_ACC void Store(I o, I r, const MaxSumExp<float>::Accumulator& a) const {
    out[o * kept_stride + r * reduced_stride] = Exp(Load(o, r) - a.max) / a.sum;
  }
};

// Layer normalisation over two axes of x[o, r0, r1].
template <class I>
struct LayerNorm {
  using Combine = MeanVariance<float>;
  const float* x;
  float* out;
  I d0, d1;

  ALPAKA_FN_ACC float Load(I o, I r0, I r1) const { return x[(o * d0 + r0) * d1 + r1]; }
  ALPAKA_FN_ACC void Store(I o, I r0, I r1, const MeanVariance<float>::Accumulator& a) const {
    out[(o * d0 + r0) * d1 + r1] = (Load(o, r0, r1) - a.mean) / Sqrt(a.variance() + 1e-5f);
  }
};

// Each element divided by its row's sum; all rows are side by side.
template <class I>
struct Share {
  using Combine = Sum<float>;
  const float* x;
  float* out;
  I rows, columns;
  ALPAKA_FN_ACC float Load(I o0, I o1, I r) const { return x[(o0 * rows + r) * columns + o1]; }
  ALPAKA_FN_ACC void Store(I o0, I o1, I r, float sum) const {
    out[(o0 * rows + r) * columns + o1] = Load(o0, o1, r) / sum;
  }
};

template <class B>
class NormalizeTest : public ::testing::Test {
 protected:
  template <class Policy>
  std::vector<float> Softmax(int64_t kept, int64_t reduced, const std::vector<float>& rows) {
    const bool along_kept = Policy::kAlong == Along::kKept;
    const int64_t kept_stride = along_kept ? 1 : reduced;
    const int64_t reduced_stride = along_kept ? kept : 1;
    std::vector<float> x(rows.size());
    for (int64_t o = 0; o < kept; ++o) {
      for (int64_t r = 0; r < reduced; ++r) {
        x[o * kept_stride + r * reduced_stride] = rows[o * reduced + r];
      }
    }
    Array<B, float> in(x);
    Array<B, float> out(kept * reduced);
    Launcher<B>(*context_).template Normalize<Policy>(
        std::array<int64_t, 1>{kept}, std::array<int64_t, 1>{reduced}, [&]<class I>() {
          return SoftmaxAxis<I>{in.data(), out.data(), static_cast<I>(kept_stride),
                                static_cast<I>(reduced_stride)};
        });
    const std::vector<float>& stored = out.Read(context_);
    std::vector<float> got(rows.size());
    for (int64_t o = 0; o < kept; ++o) {
      for (int64_t r = 0; r < reduced; ++r) {
        got[o * reduced + r] = stored[o * kept_stride + r * reduced_stride];
      }
    }
    return got;
  }

  // The definition, in double precision.
  static std::vector<double> SoftmaxOf(const std::vector<float>& rows, int64_t reduced) {
    std::vector<double> expected(rows.begin(), rows.end());
    for (size_t begin = 0; begin < rows.size(); begin += reduced) {
      double max = -std::numeric_limits<double>::infinity();
      for (int64_t r = 0; r < reduced; ++r) max = std::max(max, expected[begin + r]);
      double sum = 0;
      for (int64_t r = 0; r < reduced; ++r) sum += std::exp(expected[begin + r] - max);
      for (int64_t r = 0; r < reduced; ++r) {
        expected[begin + r] = std::exp(expected[begin + r] - max) / sum;
      }
    }
    return expected;
  }

  template <class Policy>
  void SoftmaxOfAllSizes() {
    for (const int64_t reduced : {1, 8, 31, 33, 1000}) {
      for (const int64_t kept : {1, 3, 65, 300}) {
        std::vector<float> rows = RandomVector<float>(kept * reduced, 11);
        for (float& v : rows) v *= 20;
        const std::vector<float> got = Softmax<Policy>(kept, reduced, rows);
        EXPECT_LT(RelativeError(got, SoftmaxOf(rows, reduced)), 3e-6)
            << "kept " << kept << ", reduced " << reduced << ", lanes " << Policy::kLanes;
      }
    }
  }

  // Infinities, NaN and numbers whose exponentials overflow, each in every place of a row.
  template <class Policy>
  void SoftmaxOfSpecialRows() {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const int64_t reduced : {1, 2, 40, 300}) {
      for (const int64_t place : {int64_t{0}, reduced / 2, reduced - 1}) {
        std::vector<float> rows;
        std::vector<float> special = {-infinity, infinity, nan, 3e38f, -3e38f, 1000.0f};
        for (const float s : special) {
          std::vector<float> row = RandomVector<float>(reduced, 12);
          row[place] = s;
          rows.insert(rows.end(), row.begin(), row.end());
        }
        // All but one element masked out, and all of them.
        std::vector<float> masked(reduced, -infinity);
        rows.insert(rows.end(), masked.begin(), masked.end());
        masked[place] = 0.5f;
        rows.insert(rows.end(), masked.begin(), masked.end());
        const int64_t kept = static_cast<int64_t>(rows.size()) / reduced;
        const std::vector<float> got = Softmax<Policy>(kept, reduced, rows);
        const std::vector<double> expected = SoftmaxOf(rows, reduced);
        for (size_t i = 0; i < rows.size(); ++i) {
          ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i]))
              << "row " << i / reduced << ", element " << i % reduced << " of " << reduced
              << ", special at " << place;
          if (!std::isnan(expected[i])) {
            ASSERT_NEAR(got[i], expected[i], 1e-6);
          }
        }
      }
    }
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(NormalizeTest, TestBackends);

using NormalizeWarp = ReducePolicy<Along::kReduced, 32>;
using NormalizeBlock = ReducePolicy<Along::kReduced, 256>;
using NormalizeKept = ReducePolicy<Along::kKept, 8>;
using NormalizeThread = ReducePolicy<Along::kReduced, 1>;

TYPED_TEST(NormalizeTest, Softmax) {
  this->template SoftmaxOfAllSizes<NormalizeThread>();
  this->template SoftmaxOfAllSizes<NormalizeWarp>();
  this->template SoftmaxOfAllSizes<NormalizeBlock>();
  this->template SoftmaxOfAllSizes<NormalizeKept>();
}

TYPED_TEST(NormalizeTest, SoftmaxOfSpecialRows) {
  this->template SoftmaxOfSpecialRows<NormalizeWarp>();
  this->template SoftmaxOfSpecialRows<NormalizeBlock>();
  this->template SoftmaxOfSpecialRows<NormalizeKept>();
}

TYPED_TEST(NormalizeTest, LayerNormOverTwoAxes) {
  const int64_t kept = 37;
  const int64_t d0 = 5;
  const int64_t d1 = 67;
  std::vector<float> x = RandomVector<float>(kept * d0 * d1, 13);
  for (float& v : x) v = 100 + v;  // A mean far above the deviation.
  std::vector<double> expected;
  for (int64_t o = 0; o < kept; ++o) {
    const float* const row = x.data() + o * d0 * d1;
    double mean = 0;
    for (int64_t r = 0; r < d0 * d1; ++r) mean += row[r] / double(d0 * d1);
    double variance = 0;
    for (int64_t r = 0; r < d0 * d1; ++r) {
      variance += (row[r] - mean) * (row[r] - mean) / double(d0 * d1);
    }
    for (int64_t r = 0; r < d0 * d1; ++r) {
      expected.push_back((row[r] - mean) / std::sqrt(variance + 1e-5));
    }
  }
  Array<TypeParam, float> in(x);
  const auto run = [&]<class Policy>() {
    Array<TypeParam, float> out(kept * d0 * d1);
    Launcher<TypeParam>(*this->context_)
        .template Normalize<Policy>(
            std::array<int64_t, 1>{kept}, std::array<int64_t, 2>{d0, d1}, [&]<class I>() {
              return LayerNorm<I>{in.data(), out.data(), static_cast<I>(d0), static_cast<I>(d1)};
            });
    EXPECT_LT(RelativeError(out.Read(this->context_), expected), 2e-5);
  };
  run.template operator()<NormalizeWarp>();
  run.template operator()<NormalizeBlock>();
  run.template operator()<NormalizeKept>();
}

TYPED_TEST(NormalizeTest, RowsSideBySide) {
  for (const int64_t columns : {1, 5, 64, 129}) {
    const int64_t outer = 3;
    const int64_t rows = 50;
    std::vector<float> x = RandomVector<float>(outer * rows * columns, 14);
    for (float& v : x) v += 2;
    std::vector<double> expected(x.begin(), x.end());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += x[(o * rows + r) * columns + c];
        for (int64_t r = 0; r < rows; ++r) expected[(o * rows + r) * columns + c] /= sum;
      }
    }
    Array<TypeParam, float> in(x);
    Array<TypeParam, float> out(outer * rows * columns);
    Launcher<TypeParam>(*this->context_)
        .template Normalize<NormalizeKept>(
            std::array<int64_t, 2>{outer, columns}, std::array<int64_t, 1>{rows}, [&]<class I>() {
              return Share<I>{in.data(), out.data(), static_cast<I>(rows), static_cast<I>(columns)};
            });
    EXPECT_LT(RelativeError(out.Read(this->context_), expected), 1e-6) << columns;
  }
}

TYPED_TEST(NormalizeTest, EmptyRowsLaunchNothing) {
  int calls = 0;
  const auto make = [&]<class I>() {
    ++calls;
    return SoftmaxAxis<I>{nullptr, nullptr, 1, 1};
  };
  Launcher<TypeParam> launcher(*this->context_);
  launcher.template Normalize<NormalizeWarp>(std::array<int64_t, 1>{4}, std::array<int64_t, 1>{0},
                                             make);
  launcher.template Normalize<NormalizeWarp>(std::array<int64_t, 1>{0}, std::array<int64_t, 1>{4},
                                             make);
  EXPECT_EQ(calls, 0);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_NORMALIZE_TESTS_H_
