#ifndef SOFIE_RUNTIME_KERNELS_REDUCE_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_REDUCE_TESTS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// One kept and one reduced axis, in either order in memory. Stores the whole accumulator.
template <class I, class C, class T>
struct ReduceAxis {
  using Combine = C;
  const T* x;
  typename C::Accumulator* out;
  I kept_stride;
  I reduced_stride;

  ALPAKA_FN_ACC T Load(I o, I r) const { return x[o * kept_stride + r * reduced_stride]; }
  ALPAKA_FN_ACC void Store(I o, const typename C::Accumulator& a) const { out[o] = a; }
};

// The same with the place of each value.
template <class I, class C, class T>
struct ArgReduceAxis {
  using Combine = C;
  const T* x;
  typename C::Accumulator* out;
  I kept_stride;
  I reduced_stride;

  ALPAKA_FN_ACC ValueIndex<T> Load(I o, I r) const {
    return {x[o * kept_stride + r * reduced_stride], r};
  }
  ALPAKA_FN_ACC void Store(I o, const ValueIndex<T>& a) const { out[o] = a; }
};

// x[k0, r0, k1, r1] summed over r0 and r1, or, with the axes' roles exchanged, over k0 and k1.
template <class I>
struct SumTwoAxes {
  using Combine = Sum<float>;
  const float* x;
  float* out;
  I d1, d2, d3;
  bool exchanged;

  ALPAKA_FN_ACC float Load(I o0, I o1, I r0, I r1) const {
    return exchanged ? x[((r0 * d1 + o0) * d2 + r1) * d3 + o1]
                     : x[((o0 * d1 + r0) * d2 + o1) * d3 + r1];
  }
  ALPAKA_FN_ACC void Store(I o0, I o1, float sum) const {
    out[o0 * (exchanged ? d3 : d2) + o1] = sum;
  }
};

template <class I>
struct SumAll {
  using Combine = Sum<double>;
  const double* x;
  double* out;
  I columns;
  ALPAKA_FN_ACC double Load(I r0, I r1) const { return x[r0 * columns + r1]; }
  ALPAKA_FN_ACC void Store(double sum) const { *out = sum; }
};

// Reduces no axis: every output is one element.
template <class I>
struct SumNone {
  using Combine = Sum<float>;
  const float* x;
  float* out;
  ALPAKA_FN_ACC float Load(I o) const { return x[o]; }
  ALPAKA_FN_ACC void Store(I o, float sum) const { out[o] = sum; }
};

inline constexpr int64_t kReducedLengths[] = {0, 1, 31, 1000};
inline constexpr int64_t kKeptLengths[] = {1, 3, 65, 300};

template <class B>
class ReduceTest : public ::testing::Test {
 protected:
  template <class C, class T>
  using Held = typename Array<B, T>::Held;

  // `check(row, accumulator)` for every output of a [kept] x [reduced] reduction.
  template <class Policy, class C, class T, template <class, class, class> class Body, class Check>
  void Run(int64_t kept, int64_t reduced, const std::vector<typename Array<B, T>::Held>& rows,
           const Check& check) {
    // The rows as the policy likes them: contiguous, or side by side.
    const bool along_kept = Policy::kAlong == Along::kKept;
    std::vector<typename Array<B, T>::Held> x(rows.size());
    const int64_t kept_stride = along_kept ? 1 : reduced;
    const int64_t reduced_stride = along_kept ? kept : 1;
    for (int64_t o = 0; o < kept; ++o) {
      for (int64_t r = 0; r < reduced; ++r) {
        x[o * kept_stride + r * reduced_stride] = rows[o * reduced + r];
      }
    }
    Array<B, T> in(x);
    Array<B, typename C::Accumulator> out(kept);
    Launcher<B>(*context_).template Reduce<Policy>(
        std::array<int64_t, 1>{kept}, std::array<int64_t, 1>{reduced}, [&]<class I>() {
          return Body<I, C, T>{in.data(), out.data(), static_cast<I>(kept_stride),
                               static_cast<I>(reduced_stride)};
        });
    const auto& got = out.Read(context_);
    for (int64_t o = 0; o < kept; ++o) {
      SCOPED_TRACE("kept " + std::to_string(kept) + ", reduced " + std::to_string(reduced) +
                   ", output " + std::to_string(o) + ", lanes " + std::to_string(Policy::kLanes) +
                   (along_kept ? " along kept" : " along reduced"));
      const std::vector<typename Array<B, T>::Held> row(rows.begin() + o * reduced,
                                                        rows.begin() + (o + 1) * reduced);
      check(row, got[o]);
      if (::testing::Test::HasFailure()) return;
    }
  }

  template <class Policy>
  void AllCombines() {
    for (const int64_t reduced : kReducedLengths) {
      for (const int64_t kept : kKeptLengths) {
        Numbers<Policy>(kept, reduced);
        Booleans<Policy>(kept, reduced);
        Structures<Policy>(kept, reduced);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }

  template <class Policy>
  void Numbers(int64_t kept, int64_t reduced) {
    std::vector<float> x = RandomVector<float>(kept * reduced, 2);
    Run<Policy, Sum<float>, float, ReduceAxis>(kept, reduced, x, [](const auto& row, float got) {
      double sum = 0;
      double magnitude = 0;
      for (const float v : row) {
        sum += v;
        magnitude += std::abs(v);
      }
      EXPECT_NEAR(got, sum, 4e-6 * magnitude);
    });
    std::vector<float> near_one = x;
    for (float& v : near_one) v = 1 + v / 64;
    Run<Policy, Product<float>, float, ReduceAxis>(kept, reduced, near_one,
                                                   [](const auto& row, float got) {
                                                     double product = 1;
                                                     for (const float v : row) product *= v;
                                                     EXPECT_NEAR(got, product, 1e-4 * product);
                                                   });
    const double infinity = std::numeric_limits<double>::infinity();
    Run<Policy, Max<float>, float, ReduceAxis>(kept, reduced, x, [&](const auto& row, float got) {
      double max = -infinity;
      for (const float v : row) max = std::max<double>(max, v);
      EXPECT_EQ(got, max);
    });
    Run<Policy, Min<float>, float, ReduceAxis>(kept, reduced, x, [&](const auto& row, float got) {
      double min = infinity;
      for (const float v : row) min = std::min<double>(min, v);
      EXPECT_EQ(got, min);
    });
    Run<Policy, Sum<int64_t>, int64_t, ReduceAxis>(
        kept, reduced, RandomVector<int64_t>(kept * reduced, 3), [](const auto& row, int64_t got) {
          int64_t sum = 0;
          for (const int64_t v : row) sum += v;
          EXPECT_EQ(got, sum);
        });
  }

  template <class Policy>
  void Booleans(int64_t kept, int64_t reduced) {
    // Rows without, with few and with many zeros.
    std::vector<uint8_t> x(kept * reduced, 1);
    for (int64_t i = 0; i < kept * reduced; ++i) {
      const int64_t row = i / reduced;
      if (row % 3 == 1) x[i] = i % 97 != 0;
      if (row % 3 == 2) x[i] = 0;
    }
    Run<Policy, LogicalAnd, bool, ReduceAxis>(kept, reduced, x, [](const auto& row, uint8_t got) {
      EXPECT_EQ(got, std::count(row.begin(), row.end(), 0) == 0 ? 1 : 0);
    });
    Run<Policy, LogicalOr, bool, ReduceAxis>(kept, reduced, x, [](const auto& row, uint8_t got) {
      EXPECT_EQ(got, std::count(row.begin(), row.end(), 1) > 0 ? 1 : 0);
    });
  }

  template <class Policy>
  void Structures(int64_t kept, int64_t reduced) {
    std::vector<float> x = RandomVector<float>(kept * reduced, 4);
    for (float& v : x) v *= 50;
    Run<Policy, MaxSumExp<float>, float, ReduceAxis>(
        kept, reduced, x, [](const auto& row, const MaxSumExp<float>::Accumulator& got) {
          double max = -std::numeric_limits<double>::infinity();
          for (const float v : row) max = std::max<double>(max, v);
          double sum = 0;
          for (const float v : row) sum += std::exp(v - max);
          EXPECT_EQ(got.max, max);
          EXPECT_NEAR(got.sum, sum, 1e-5 * sum);
        });
    Run<Policy, MeanVariance<float>, float, ReduceAxis>(
        kept, reduced, x, [](const auto& row, const MeanVariance<float>::Accumulator& got) {
          double mean = 0;
          for (const float v : row) mean += v / row.size();
          double m2 = 0;
          for (const float v : row) m2 += (v - mean) * (v - mean);
          EXPECT_EQ(got.count, row.size());
          EXPECT_NEAR(got.mean, mean, 1e-4);
          EXPECT_NEAR(got.m2, m2, 1e-4 + 1e-4 * m2);
        });
    // Few different values, so that many are equal.
    for (float& v : x) v = std::floor(v / 10);
    Run<Policy, ArgMax<float>, float, ArgReduceAxis>(
        kept, reduced, x, [](const auto& row, const ValueIndex<float>& got) {
          if (row.empty()) {
            EXPECT_EQ(got.value, -std::numeric_limits<float>::infinity());
            return;
          }
          const auto at = std::max_element(row.begin(), row.end());
          EXPECT_EQ(got.value, *at);
          EXPECT_EQ(got.index, at - row.begin());
        });
    Run<Policy, ArgMin<float>, float, ArgReduceAxis>(
        kept, reduced, x, [](const auto& row, const ValueIndex<float>& got) {
          if (row.empty()) {
            EXPECT_EQ(got.value, std::numeric_limits<float>::infinity());
            return;
          }
          const auto at = std::min_element(row.begin(), row.end());
          EXPECT_EQ(got.value, *at);
          EXPECT_EQ(got.index, at - row.begin());
        });
  }

  // NaN in one row of each shape.
  template <class Policy>
  void NotANumber() {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const int64_t reduced : {1, 31, 1000}) {
      const int64_t kept = 5;
      std::vector<float> x = RandomVector<float>(kept * reduced, 5);
      const int64_t place = reduced / 2;
      x[2 * reduced + place] = nan;
      const auto check = [&](const auto& row, float got) {
        const bool has_nan = std::any_of(row.begin(), row.end(), [](float v) { return v != v; });
        EXPECT_EQ(std::isnan(got), has_nan);
      };
      Run<Policy, Max<float>, float, ReduceAxis>(kept, reduced, x, check);
      Run<Policy, Min<float>, float, ReduceAxis>(kept, reduced, x, check);
      Run<Policy, Sum<float>, float, ReduceAxis>(kept, reduced, x, check);
      const auto check_place = [&](const auto& row, const ValueIndex<float>& got) {
        if (std::any_of(row.begin(), row.end(), [](float v) { return v != v; })) {
          EXPECT_TRUE(std::isnan(got.value));
          EXPECT_EQ(got.index, place);
        }
      };
      Run<Policy, ArgMax<float>, float, ArgReduceAxis>(kept, reduced, x, check_place);
      Run<Policy, ArgMin<float>, float, ArgReduceAxis>(kept, reduced, x, check_place);
    }
  }

  template <class Policy>
  void TwoAxes(std::array<int64_t, 4> d) {
    const std::vector<float> x = RandomVector<float>(d[0] * d[1] * d[2] * d[3], 6);
    const bool exchanged = Policy::kAlong == Along::kKept;
    const std::array<int64_t, 2> kept =
        exchanged ? std::array<int64_t, 2>{d[1], d[3]} : std::array<int64_t, 2>{d[0], d[2]};
    const std::array<int64_t, 2> reduced =
        exchanged ? std::array<int64_t, 2>{d[0], d[2]} : std::array<int64_t, 2>{d[1], d[3]};
    Array<B, float> in(x);
    Array<B, float> out(kept[0] * kept[1]);
    Launcher<B>(*context_).template Reduce<Policy>(kept, reduced, [&]<class I>() {
      return SumTwoAxes<I>{
          in.data(), out.data(), static_cast<I>(d[1]), static_cast<I>(d[2]), static_cast<I>(d[3]),
          exchanged};
    });
    std::vector<double> expected(kept[0] * kept[1], 0);
    for (int64_t i0 = 0; i0 < d[0]; ++i0) {
      for (int64_t i1 = 0; i1 < d[1]; ++i1) {
        for (int64_t i2 = 0; i2 < d[2]; ++i2) {
          for (int64_t i3 = 0; i3 < d[3]; ++i3) {
            expected[exchanged ? i1 * d[3] + i3 : i0 * d[2] + i2] +=
                x[((i0 * d[1] + i1) * d[2] + i2) * d[3] + i3];
          }
        }
      }
    }
    EXPECT_LT(RelativeError(out.Read(context_), expected), 2e-6)
        << d[0] << " " << d[1] << " " << d[2] << " " << d[3];
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(ReduceTest, TestBackends);

using Warp = ReducePolicy<Along::kReduced, 32>;
using Block = ReducePolicy<Along::kReduced, 256>;
using Thread = ReducePolicy<Along::kReduced, 1>;
using Eight = ReducePolicy<Along::kReduced, 8>;
using KeptEight = ReducePolicy<Along::kKept, 8>;
using KeptOne = ReducePolicy<Along::kKept, 1>;
using KeptMost = ReducePolicy<Along::kKept, 32>;

TYPED_TEST(ReduceTest, AWarpForEachOutput) { this->template AllCombines<Warp>(); }
TYPED_TEST(ReduceTest, ABlockForEachOutput) { this->template AllCombines<Block>(); }
TYPED_TEST(ReduceTest, AlongKept) { this->template AllCombines<KeptEight>(); }

TYPED_TEST(ReduceTest, OtherNumbersOfLanes) {
  for (const int64_t reduced : kReducedLengths) {
    for (const int64_t kept : kKeptLengths) {
      this->template Numbers<Thread>(kept, reduced);
      this->template Numbers<Eight>(kept, reduced);
      this->template Numbers<KeptOne>(kept, reduced);
      this->template Numbers<KeptMost>(kept, reduced);
    }
  }
}

TYPED_TEST(ReduceTest, NaNIsNotLost) {
  this->template NotANumber<Warp>();
  this->template NotANumber<Block>();
  this->template NotANumber<KeptEight>();
}

TYPED_TEST(ReduceTest, SeveralAxes) {
  for (const std::array<int64_t, 4>& d : {std::array<int64_t, 4>{3, 5, 7, 11},
                                          {2, 1, 3, 129},
                                          {1, 17, 1, 1000},
                                          {9, 2, 70, 70},
                                          {2, 21, 3, 8}}) {
    this->template TwoAxes<Warp>(d);
    this->template TwoAxes<Block>(d);
    this->template TwoAxes<KeptEight>(d);
    this->template TwoAxes<KeptOne>(d);
  }
}

TYPED_TEST(ReduceTest, WideIndices) {
  this->context_->set_wide(true);
  this->template TwoAxes<Warp>({3, 5, 7, 11});
  this->template TwoAxes<KeptEight>({3, 5, 7, 11});
}

TYPED_TEST(ReduceTest, EverythingToAScalar) {
  const std::vector<double> x = RandomVector<double>(37 * 1001, 7);
  Array<TypeParam, double> in(x);
  Array<TypeParam, double> out(1);
  const auto make = [&]<class I>() { return SumAll<I>{in.data(), out.data(), I{1001}}; };
  Launcher<TypeParam>(*this->context_)
      .template Reduce<Block>(std::array<int64_t, 0>{}, std::array<int64_t, 2>{37, 1001}, make);
  double sum = 0;
  for (const double v : x) sum += v;
  EXPECT_NEAR(out.Read(this->context_)[0], sum, 1e-10);
}

TYPED_TEST(ReduceTest, NoReducedAxis) {
  const std::vector<float> x = RandomVector<float>(77, 8);
  Array<TypeParam, float> in(x);
  Array<TypeParam, float> out(77);
  Launcher<TypeParam>(*this->context_)
      .template Reduce<Warp>(std::array<int64_t, 1>{77}, std::array<int64_t, 0>{},
                             [&]<class I>() { return SumNone<I>{in.data(), out.data()}; });
  EXPECT_EQ(out.Read(this->context_), x);
}

TYPED_TEST(ReduceTest, ManyOutputs) {
  const int64_t kept = 200003;
  const std::vector<float> x = RandomVector<float>(kept * 3, 9);
  const auto check = [](const auto& row, float got) {
    EXPECT_NEAR(got, double{row[0]} + row[1] + row[2], 1e-6);
  };
  this->template Run<Warp, Sum<float>, float, ReduceAxis>(kept, 3, x, check);
  this->template Run<Thread, Sum<float>, float, ReduceAxis>(kept, 3, x, check);
  this->template Run<KeptOne, Sum<float>, float, ReduceAxis>(kept, 3, x, check);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_REDUCE_TESTS_H_
