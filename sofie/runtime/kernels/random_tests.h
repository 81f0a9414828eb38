#ifndef SOFIE_RUNTIME_KERNELS_RANDOM_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_RANDOM_TESTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

struct RandomPlace {
  uint64_t seed;
  uint64_t run;
  uint32_t stream;
  uint64_t index;
};

template <class I>
struct DrawWords {
  const RandomPlace* places;
  uint32_t* words;  // four a place
  ALPAKA_FN_ACC void operator()(I i) const {
    const RandomPlace& place = places[i / 4];
    words[i] = Philox(place.seed, place.run, place.stream, place.index).word[i % 4];
  }
};

template <class I>
struct DrawNumbers {
  double* uniform;
  double* normal;
  ALPAKA_FN_ACC void operator()(I i) const {
    const auto index = static_cast<uint64_t>(i);
    uniform[i] = i % 2 == 0 ? UniformDouble(7, 1, 2, index) : UniformFloat(7, 1, 2, index);
    normal[i] = i % 2 == 0 ? NormalDouble(7, 1, 2, index) : NormalFloat(7, 1, 2, index);
  }
};

template <class B>
class RandomTest : public ::testing::Test {
 protected:
  TestContext<B> context_;
};
TYPED_TEST_SUITE(RandomTest, TestBackends);

// The answers that the generator's authors give (Random123, kat_vectors).
TYPED_TEST(RandomTest, KnownAnswers) {
  const uint64_t all = ~uint64_t{0};
  Array<TypeParam, RandomPlace> places(
      std::vector<RandomPlace>{{0, 0, 0, 0},
                               {all, all, 0xffffffff, all},
                               {0x299f31d0a4093822, 0x03707344, 0x13198a2e, 0x85a308d3243f6a88}});
  Array<TypeParam, uint32_t> words(12);
  Launcher<TypeParam>(*this->context_).Pointwise(std::array<int64_t, 1>{12}, [&]<class I>() {
    return DrawWords<I>{places.data(), words.data()};
  });
  EXPECT_EQ(words.Read(this->context_),
            (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d,
                                   0x41c83b0e, 0xa20bc7c6, 0x6d5451fd, 0xd16cfe09, 0x94fdcceb,
                                   0x5001e420, 0x24126ea1}));
}

TYPED_TEST(RandomTest, Moments) {
  constexpr int64_t kNumbers = 100000;
  Array<TypeParam, double> uniform(kNumbers);
  Array<TypeParam, double> normal(kNumbers);
  Launcher<TypeParam>(*this->context_).Pointwise(std::array<int64_t, 1>{kNumbers}, [&]<class I>() {
    return DrawNumbers<I>{uniform.data(), normal.data()};
  });
  double sums[4] = {};
  for (const double x : uniform.Read(this->context_)) {
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sums[0] += x / kNumbers;
    sums[1] += x * x / kNumbers;
  }
  for (const double x : normal.Read(this->context_)) {
    sums[2] += x / kNumbers;
    sums[3] += x * x / kNumbers;
  }
  // Five standard errors.
  EXPECT_NEAR(sums[0], 1.0 / 2, 5 * 0.2887 / 316);
  EXPECT_NEAR(sums[1], 1.0 / 3, 5 * 0.2981 / 316);
  EXPECT_NEAR(sums[2], 0, 5.0 / 316);
  EXPECT_NEAR(sums[3], 1, 5 * 1.4142 / 316);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_RANDOM_TESTS_H_
