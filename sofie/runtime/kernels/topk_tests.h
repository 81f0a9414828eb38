#ifndef SOFIE_RUNTIME_KERNELS_TOPK_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_TESTS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// Element j of row [outer, inner] of a packed [outer, axis, inner].
template <class T, class I>
struct AxisOf {
  const T* x;
  I axis, inner;

  ALPAKA_FN_ACC T Load(I o, I i, I j) const { return x[(o * axis + j) * inner + i]; }
};

// Element j of row i is computed: distances of points on a line.
template <class I>
struct Distances {
  const float* x;
  ALPAKA_FN_ACC float Load(I i, I j) const { return (x[i] - x[j]) * (x[i] - x[j]); }
};

template <class B>
class TopKTest : public ::testing::Test {
 protected:
  // Compares with a stable sort: every value bit for bit, every index.
  template <class T>
  void Check(const std::vector<T>& x, int64_t outer, int64_t axis, int64_t inner, int64_t k,
             bool largest, bool sorted = true, bool with_values = true, bool with_indices = true) {
    SCOPED_TRACE("outer " + std::to_string(outer) + ", axis " + std::to_string(axis) + ", inner " +
                 std::to_string(inner) + ", k " + std::to_string(k) +
                 (largest ? ", largest" : ", smallest"));
    Array<B, T> in(x);
    Array<B, T> values(outer * k * inner);
    Array<B, int64_t> indices(outer * k * inner);
    Launcher<B>(*context_).TopK(std::array<int64_t, 2>{outer, inner},
                                TopKArgs<T>{
                                    .values = with_values ? values.data() : nullptr,
                                    .indices = with_indices ? indices.data() : nullptr,
                                    .axis = axis,
                                    .inner = inner,
                                    .k = k,
                                    .largest = largest,
                                    .sorted = sorted,
                                },
                                [&]<class I>() {
                                  return AxisOf<T, I>{in.data(), static_cast<I>(axis),
                                                      static_cast<I>(inner)};
                                });
    const std::vector<T>& got_values = values.Read(context_);
    const std::vector<int64_t>& got_indices = indices.Read(context_);
    std::vector<int64_t> order(axis);
    for (int64_t row = 0; row < outer * inner; ++row) {
      const int64_t base = row / inner * axis * inner + row % inner;
      const auto at = [&](int64_t j) { return x[base + j * inner]; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return largest ? Above(at(a), at(b)) : Above(at(b), at(a));
      });
      for (int64_t r = 0; r < k; ++r) {
        const int64_t place = row / inner * k * inner + r * inner + row % inner;
        if (with_indices) {
          ASSERT_EQ(got_indices[place], order[r]) << "row " << row << ", rank " << r;
        }
        if (!with_values) continue;
        const T expected = at(order[r]);
        if (expected != expected) {
          ASSERT_NE(got_values[place], got_values[place]) << "row " << row << ", rank " << r;
        } else {
          ASSERT_EQ(got_values[place], expected) << "row " << row << ", rank " << r;
        }
      }
    }
  }

  // The order of TopK: NaN above every number.
  template <class T>
  static bool Above(T a, T b) {
    if (b != b) return false;
    if (a != a) return true;
    return a > b;
  }

  // Random numbers, of which many are equal.
  template <class T>
  static std::vector<T> WithTies(int64_t elements, uint32_t seed) {
    std::vector<T> x = RandomVector<T>(elements, seed);
    if constexpr (std::is_class_v<T>) {
      for (T& v : x) v = T(std::round(v * 10) / 10);
    } else if constexpr (std::is_floating_point_v<T>) {
      for (T& v : x) v = std::round(v * 10) / 10;
    }
    return x;
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(TopKTest, TestBackends);

TYPED_TEST(TopKTest, EveryKOfShortRows) {
  for (const int64_t axis : {1, 2, 7, 31, 32, 33, 40}) {
    const std::vector<float> x = this->template WithTies<float>(9 * axis, 21);
    for (int64_t k = 1; k <= axis; ++k) {
      this->Check(x, 9, axis, 1, k, true);
      this->Check(x, 9, axis, 1, k, false);
      if (TestFixture::HasFailure()) return;
    }
  }
}

TYPED_TEST(TopKTest, LongRows) {
  for (const int64_t axis : {100, 128, 129, 255, 257, 1000, 1024, 1025, 5000, 20011}) {
    const std::vector<float> ties = this->template WithTies<float>(5 * axis, 22);
    const std::vector<float> distinct = RandomVector<float>(5 * axis, 23);
    for (const int64_t k : {int64_t{1}, int64_t{16}, int64_t{17}, int64_t{31}, int64_t{32},
                            int64_t{33}, std::min<int64_t>(axis, 1000)}) {
      if (k > axis) continue;
      this->Check(ties, 5, axis, 1, k, true);
      this->Check(distinct, 5, axis, 1, k, false);
      if (TestFixture::HasFailure()) return;
    }
  }
}

TYPED_TEST(TopKTest, ManyRows) {
  const std::vector<float> x = this->template WithTies<float>(30011 * 20, 24);
  this->Check(x, 30011, 20, 1, 5, true);
}

TYPED_TEST(TopKTest, OtherThanTheLastAxis) {
  for (const int64_t axis : {5, 100, 1500}) {
    for (const int64_t inner : {2, 13}) {
      const std::vector<float> x = this->template WithTies<float>(3 * axis * inner, 25);
      for (const int64_t k : {int64_t{1}, int64_t{5}, std::min<int64_t>(axis, 50)}) {
        this->Check(x, 3, axis, inner, k, true);
        this->Check(x, 3, axis, inner, k, false);
      }
    }
  }
}

TYPED_TEST(TopKTest, AllEqualGoToTheLowestIndices) {
  this->Check(std::vector<float>(4 * 300, 1.5f), 4, 300, 1, 20, true);
  this->Check(std::vector<float>(4 * 300, 1.5f), 4, 300, 1, 20, false);
  this->Check(std::vector<float>(4 * 300, 1.5f), 4, 300, 1, 100, true);
}

TYPED_TEST(TopKTest, NaNInfinityAndZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int64_t axis : {10, 100, 2000}) {
    std::vector<float> x = RandomVector<float>(8 * axis, 26);
    const std::vector<float> special = {nan,   -nan, infinity, -infinity, 0.0f,
                                        -0.0f, 0.0f, 3e38f,    -3e38f,    1e-45f};
    std::mt19937 random(27);
    for (int64_t row = 0; row < 7; ++row) {
      for (int64_t j = 0; j < axis; ++j) {
        if (random() % 3 == 0) x[row * axis + j] = special[random() % special.size()];
      }
    }
    for (int64_t j = 0; j < axis; ++j) x[7 * axis + j] = nan;
    for (const int64_t k :
         {int64_t{1}, int64_t{9}, std::min<int64_t>(axis, 32), std::min<int64_t>(axis, 77)}) {
      this->Check(x, 8, axis, 1, k, true);
      this->Check(x, 8, axis, 1, k, false);
      if (TestFixture::HasFailure()) return;
    }
  }
}

TYPED_TEST(TopKTest, LowestAndHighestIntegers) {
  using Limits = std::numeric_limits<int32_t>;
  std::vector<int32_t> x = RandomVector<int32_t>(6 * 50, 28);
  for (size_t i = 0; i < x.size(); i += 7) x[i] = i % 2 ? Limits::min() : Limits::max();
  for (const int64_t k : {1, 16, 50}) {
    this->Check(x, 6, 50, 1, k, true);
    this->Check(x, 6, 50, 1, k, false);
  }
}

TYPED_TEST(TopKTest, OtherTypes) {
  for (const int64_t axis : {100, 1500}) {
    for (const int64_t k : {1, 20, 60}) {
      for (const bool largest : {true, false}) {
        this->Check(this->template WithTies<double>(4 * axis, 29), 4, axis, 1, k, largest);
        this->Check(this->template WithTies<int64_t>(4 * axis, 30), 4, axis, 1, k, largest);
        this->Check(this->template WithTies<uint8_t>(4 * axis, 31), 4, axis, 1, k, largest);
        this->Check(this->template WithTies<Float16>(4 * axis, 35), 4, axis, 1, k, largest);
        this->Check(this->template WithTies<BFloat16>(4 * axis, 36), 4, axis, 1, k, largest);
      }
    }
  }
  // Doubles and 64-bit integers that differ in their low halves only.
  std::vector<double> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < 300; ++i) {
    x.push_back(1 + ((i * 7919) % 300) * 0x1p-52);
    y.push_back((int64_t{1} << 40) + (i * 7919) % 300);
  }
  for (const int64_t k : {10, 100}) {
    this->Check(x, 3, 100, 1, k, true);
    this->Check(y, 3, 100, 1, k, false);
  }
}

TYPED_TEST(TopKTest, OnlyOneOutput) {
  const std::vector<float> x = this->template WithTies<float>(6 * 90, 32);
  for (const int64_t k : {5, 60}) {
    this->Check(x, 6, 90, 1, k, true, true, true, false);
    this->Check(x, 6, 90, 1, k, true, true, false, true);
  }
}

TYPED_TEST(TopKTest, UnsortedIsAllowedToBeSorted) {
  const std::vector<float> x = this->template WithTies<float>(6 * 90, 33);
  this->Check(x, 6, 90, 1, 7, true, false);
  this->Check(x, 6, 90, 1, 77, true, false);
}

TYPED_TEST(TopKTest, EmptyAndImpossible) {
  this->Check(std::vector<float>{}, 0, 10, 1, 3, true);
  this->Check(RandomVector<float>(20, 34), 2, 10, 1, 0, true);
  Launcher<TypeParam> launcher(*this->context_);
  const float* const x = nullptr;
  const auto nothing = [&]<class I>() { return AxisOf<float, I>{x, 3, 1}; };
  for (const int64_t k : {4, -1}) {
    EXPECT_THROW(launcher.TopK(std::array<int64_t, 2>{1, 1},
                               TopKArgs<float>{.axis = 3, .inner = 1, .k = k}, nothing),
                 ArgumentError);
  }
}

TYPED_TEST(TopKTest, OfWhatIsComputed) {
  for (const int64_t points : {20, 110, 700}) {
    for (const int64_t k : {1, 17, 20}) {
      const std::vector<float> x = RandomVector<float>(points, 35);
      Array<TypeParam, float> x_array(x);
      Array<TypeParam, float> values(points * k);
      Array<TypeParam, int64_t> indices(points * k);
      Launcher<TypeParam>(*this->context_)
          .TopK(std::array<int64_t, 1>{points},
                TopKArgs<float>{.values = values.data(),
                                .indices = indices.data(),
                                .axis = points,
                                .k = k,
                                .largest = false},
                [&]<class I>() { return Distances<I>{x_array.data()}; });
      const std::vector<float>& got_values = values.Read(this->context_);
      const std::vector<int64_t>& got_indices = indices.Read(this->context_);
      for (int64_t i = 0; i < points; ++i) {
        std::vector<int64_t> order(points);
        std::iota(order.begin(), order.end(), 0);
        const auto distance = [&](int64_t j) { return (x[i] - x[j]) * (x[i] - x[j]); };
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
        for (int64_t r = 0; r < k; ++r) {
          ASSERT_EQ(got_indices[i * k + r], order[r]) << points << ", row " << i << ", rank " << r;
          ASSERT_EQ(got_values[i * k + r], distance(order[r]));
        }
      }
    }
  }
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_TOPK_TESTS_H_
