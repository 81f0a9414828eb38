#ifndef SOFIE_RUNTIME_KERNELS_POINTWISE_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_POINTWISE_TESTS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// Adds to each element 1 + 2 · its linear index, found from the logical ones: elements visited
// never, twice, or under a wrong index come out wrong.
template <class I, size_t R>
struct CountVisits {
  int64_t* out;
  Indices<I, R> extents;

  template <class... Index>
  ALPAKA_FN_ACC void operator()(Index... index) const {
    static_assert(sizeof...(Index) == R);
    int64_t linear = 0;
    if constexpr (R > 0) {
      const I indices[R] = {index...};
      for (size_t axis = 0; axis < R; ++axis) linear = linear * extents.value[axis] + indices[axis];
    }
    out[linear] += 1 + 2 * linear;
  }
};

// out = 2 x, in two halves.
template <class I>
struct Twice {
  using Value = float;
  const float* x;
  float* out;
  I columns;
  ALPAKA_FN_ACC float Load(I i, I j) const { return x[i * columns + j]; }
  ALPAKA_FN_ACC void Store(I i, I j, float value) const { out[i * columns + j] = 2 * value; }
  ALPAKA_FN_ACC void operator()(I i, I j) const { Store(i, j, Load(i, j)); }
};

// The bytes of the index type.
template <class I>
struct IndexBytes {
  int64_t* out;
  ALPAKA_FN_ACC void operator()(I i) const { out[i] = sizeof(I); }
};

template <class B>
class PointwiseTest : public ::testing::Test {
 protected:
  template <size_t R>
  void Visit(const std::array<int64_t, R>& extents) {
    const int64_t points = Elements(extents);
    Array<B, int64_t> out(std::vector<int64_t>(points, 0));
    Launcher<B>(*context_).Pointwise(extents, [&]<class I>() {
      CountVisits<I, R> body{out.data(), {}};
      std::transform(extents.begin(), extents.end(), body.extents.value,
                     [](int64_t extent) { return static_cast<I>(extent); });
      return body;
    });
    const std::vector<int64_t>& visited = out.Read(context_);
    for (int64_t i = 0; i < points; ++i) {
      ASSERT_EQ(visited[i], 1 + 2 * i) << "rank " << R << ", point " << i << " of " << points;
    }
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(PointwiseTest, TestBackends);

TYPED_TEST(PointwiseTest, VisitsEveryPointOnce) {
  this->Visit(std::array<int64_t, 0>{});
  for (const int64_t n : {1, 2, 31, 257, 65537}) this->Visit(std::array<int64_t, 1>{n});
  this->Visit(std::array<int64_t, 2>{1000, 1});
  this->Visit(std::array<int64_t, 2>{1, 99991});
  this->Visit(std::array<int64_t, 2>{331, 77});
  this->Visit(std::array<int64_t, 3>{7, 33, 101});
  this->Visit(std::array<int64_t, 4>{3, 1, 129, 65});
  this->Visit(std::array<int64_t, 5>{5, 3, 7, 2, 129});
  this->Visit(std::array<int64_t, 6>{3, 5, 1, 7, 11, 13});
}

TYPED_TEST(PointwiseTest, VisitsEveryPointOnceWithWideIndices) {
  this->context_->set_wide(true);
  this->Visit(std::array<int64_t, 1>{65537});
  this->Visit(std::array<int64_t, 3>{7, 33, 101});
  this->Visit(std::array<int64_t, 6>{3, 5, 1, 7, 11, 13});
}

TYPED_TEST(PointwiseTest, LoopsOverMoreThanTheGrid) {
  this->Visit(std::array<int64_t, 2>{3001, 2003});
}

TYPED_TEST(PointwiseTest, EmptySpacesLaunchNothing) {
  int calls = 0;
  const auto make = [&]<class I>() {
    ++calls;
    return IndexBytes<I>{nullptr};
  };
  Launcher<TypeParam>(*this->context_).Pointwise(std::array<int64_t, 1>{0}, make);
  EXPECT_EQ(calls, 0);
}

TYPED_TEST(PointwiseTest, IndexTypeFollowsTheContext) {
  Array<TypeParam, int64_t> out(3);
  const auto run = [&](bool wide) {
    this->context_->set_wide(wide);
    Launcher<TypeParam>(*this->context_).Pointwise(std::array<int64_t, 1>{3}, [&]<class I>() {
      return IndexBytes<I>{out.data()};
    });
    return out.Read(this->context_);
  };
  const int64_t narrow = TypeParam::kGpu ? 4 : 8;
  EXPECT_EQ(run(false), std::vector<int64_t>(3, narrow));
  EXPECT_EQ(run(true), std::vector<int64_t>(3, 8));
}

TYPED_TEST(PointwiseTest, LoadAndStoreApart) {
  for (const int64_t rows : {1, 3, 1000, 20011}) {
    const std::vector<float> x = RandomVector<float>(rows * 33, 1);
    Array<TypeParam, float> in(x);
    Array<TypeParam, float> out(rows * 33);
    Launcher<TypeParam>(*this->context_)
        .Pointwise(std::array<int64_t, 2>{rows, 33},
                   [&]<class I>() { return Twice<I>{in.data(), out.data(), I{33}}; });
    const std::vector<float>& got = out.Read(this->context_);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], 2 * x[i]) << i;
  }
}

TYPED_TEST(PointwiseTest, StepsReachTheHook) {
  struct Recorder : StepHook {
    void OnStep(int index) override { steps.push_back(index); }
    std::vector<int> steps;
  } recorder;
  this->context_->set_hook(&recorder);
  Launcher<TypeParam> launcher(*this->context_);
  launcher.Step(3);
  launcher.Step(4);
  EXPECT_EQ(recorder.steps, (std::vector<int>{3, 4}));
  EXPECT_EQ(this->context_->step(), 4);
}

// The divisions that 32-bit indices are taken apart with.
TEST(FastDivTest, EqualsDivision) {
  const std::vector<uint32_t> divisors = {
      1,     2,     3,       5,        7,    10,    16,    100,        641,       65535,
      65536, 65537, 1000003, 1u << 30, 4097, 12345, 99999, 0x7ffffffe, 0x7fffffff};
  for (const uint32_t d : divisors) {
    const FastDiv division(d);
    std::vector<uint32_t> numerators = {0, 1, d - 1, d, 0x7ffffffe, 0x7fffffff};
    for (uint64_t q = 1; q * d < 0x80000000u; q = q * 3 + 1) {
      numerators.push_back(static_cast<uint32_t>(q * d));
      numerators.push_back(static_cast<uint32_t>(q * d - 1));
    }
    for (const uint32_t n : numerators) ASSERT_EQ(division.Divide(n), n / d) << n << " / " << d;
  }
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_POINTWISE_TESTS_H_
