#ifndef SOFIE_RUNTIME_KERNELS_SCATTER_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_SCATTER_TESTS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// out[to[u], line] = CombineT(out[to[u], line], updates[u, line]).
template <class I, class T, class CombineT>
struct UpdateRows {
  using Combine = CombineT;
  T* out;
  const int64_t* to;
  const T* updates;
  I width;
  ALPAKA_FN_ACC Update<T> At(I line, I u) const {
    return {out + static_cast<I>(to[u]) * width + line, updates[u * width + line]};
  }
};

template <class B>
class ScatterTest : public ::testing::Test {
 protected:
  // Small whole numbers: their sums and products are exact in any order.
  template <class T, template <class> class CombineT>
  void Check(int64_t rows, int64_t width, int64_t updates, bool distinct = false) {
    std::vector<T> out(rows * width);
    std::vector<T> values(updates * width);
    std::vector<int64_t> to(updates);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(i % 5 + 1);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 7 % 2 + 1);
    for (int64_t u = 0; u < updates; ++u) to[u] = distinct ? (u * 7 + 3) % rows : u % 3 % rows;
    Array<B, T> out_array(out);
    Array<B, T> values_array(values);
    Array<B, int64_t> to_array(to);
    Launcher<B>(*context_).Scatter(
        std::array<int64_t, 1>{width}, std::array<int64_t, 1>{updates}, [&]<class I>() {
          return UpdateRows<I, T, CombineT<T>>{out_array.data(), to_array.data(),
                                               values_array.data(), static_cast<I>(width)};
        });
    for (int64_t u = 0; u < updates; ++u) {
      for (int64_t i = 0; i < width; ++i) {
        T& element = out[to[u] * width + i];
        element = static_cast<T>(CombineT<T>()(element, values[u * width + i]));
      }
    }
    EXPECT_EQ(out_array.Read(context_), out) << rows << " x " << width << ", " << updates;
  }

  template <class T>
  void CheckAll() {
    for (const int64_t width : {1, 3, 64, 100}) {
      this->template Check<T, Sum>(5, width, 9);
      this->template Check<T, Product>(5, width, 4);
      this->template Check<T, Max>(5, width, 9);
      this->template Check<T, Min>(5, width, 9);
      this->template Check<T, Replace>(10, width, 10, true);
    }
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(ScatterTest, TestBackends);

TYPED_TEST(ScatterTest, FourBytes) {
  this->template CheckAll<float>();
  this->template CheckAll<int32_t>();
  this->template CheckAll<uint32_t>();
}
TYPED_TEST(ScatterTest, EightBytes) {
  this->template CheckAll<double>();
  this->template CheckAll<int64_t>();
  this->template CheckAll<uint64_t>();
}
// Elements that share a word with their neighbours.
TYPED_TEST(ScatterTest, FewerBytes) {
  this->template CheckAll<int8_t>();
  this->template CheckAll<uint8_t>();
  this->template CheckAll<int16_t>();
  this->template CheckAll<uint16_t>();
}

TYPED_TEST(ScatterTest, ManyUpdatesMeet) {
  this->template Check<float, Sum>(4, 64, 20000);
  this->template Check<int64_t, Sum>(4, 1, 20000);
  this->template Check<uint8_t, Max>(4, 3, 20000);
}

TYPED_TEST(ScatterTest, NothingToDo) {
  this->template Check<float, Sum>(4, 3, 0);
  this->template Check<float, Sum>(4, 0, 3);
}

TYPED_TEST(ScatterTest, NaNSpreads) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array<TypeParam, float> out(std::vector<float>{1, 2});
  Array<TypeParam, float> values(std::vector<float>{nan, 3});
  Array<TypeParam, int64_t> to(std::vector<int64_t>{0, 0});
  Launcher<TypeParam>(*this->context_)
      .Scatter(std::array<int64_t, 1>{1}, std::array<int64_t, 1>{2}, [&]<class I>() {
        return UpdateRows<I, float, Max<float>>{out.data(), to.data(), values.data(), 1};
      });
  const std::vector<float>& got = out.Read(this->context_);
  EXPECT_NE(got[0], got[0]);
  EXPECT_EQ(got[1], 2);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_SCATTER_TESTS_H_
