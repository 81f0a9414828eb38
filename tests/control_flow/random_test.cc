// Random numbers of a session: what its seed and its runs have to do with them, on every backend.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/control_flow/random_model.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

struct Numbers {
  std::vector<float> free;    // of a node without a seed
  std::vector<float> seeded;  // of one that has a seed

  bool operator==(const Numbers&) const = default;
};

Numbers Draw(random_model::Session& session, int64_t rows) {
  const std::vector<float> like(static_cast<size_t>(rows) * 3);
  const random_model::Outputs out = session.Run({.like = {like.data(), {rows, 3}}});
  const auto elements = static_cast<size_t>(rows) * 3;
  return {.free = {out.unseeded.data, out.unseeded.data + elements},
          .seeded = {out.seeded.data, out.seeded.data + elements}};
}

void ExpectNear(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

using RandomTest = BackendTest;

TEST_P(RandomTest, EqualSeedsGiveEqualNumbersRunByRun) {
  random_model::Session a(device(), {.random_seed = 5});
  random_model::Session b(device(), {.random_seed = 5});
  for (const int64_t rows : {4, 100, 0, 1, 4}) EXPECT_EQ(Draw(a, rows), Draw(b, rows));
}

// What the interpreter of programs, which has a Philox generator of its own
// (sofie/testing/math_functions.py), gives for this model in its first run with the seed 0.
TEST_P(RandomTest, NumbersAreThoseOfTheGeneratorOnEveryBackend) {
  random_model::Session session(device(), {.random_seed = 0});
  const Numbers found = Draw(session, 2);
  ExpectNear(found.free, {-0.5938699f, 1.394773f, 0.762395f, 0.7987452f, 3.450482f, 0.5843346f});
  ExpectNear(found.seeded,
             {0.7338684f, -0.5005159f, -0.7199203f, 0.590251f, -1.625131f, 0.5301889f});
}

#if defined(SOFIE_WITH_CPU)
TEST_P(RandomTest, NumbersAreThoseOfOneThreadRunByRun) {
  random_model::Session session(device(), {.random_seed = 5});
  random_model::Session host(Device::Cpu(), {.random_seed = 5});
  for (const int64_t rows : {4, 100, 0, 1, 4}) {
    const Numbers numbers = Draw(session, rows);
    const Numbers on_host = Draw(host, rows);
    ExpectNear(numbers.free, on_host.free);
    ExpectNear(numbers.seeded, on_host.seeded);
  }
}
#endif

TEST_P(RandomTest, EveryRunDrawsAnew) {
  random_model::Session session(device());
  const Numbers first = Draw(session, 50);
  const Numbers second = Draw(session, 50);
  EXPECT_NE(first.free, second.free);
  EXPECT_EQ(first.seeded, second.seeded);
}

TEST_P(RandomTest, OtherSeedsGiveOtherNumbers) {
  random_model::Session a(device(), {.random_seed = 1});
  random_model::Session b(device(), {.random_seed = uint64_t{1} << 63});
  const Numbers of_a = Draw(a, 50);
  const Numbers of_b = Draw(b, 50);
  EXPECT_NE(of_a.free, of_b.free);
  EXPECT_EQ(of_a.seeded, of_b.seeded);
}

INSTANTIATE_TEST_SUITE_P(, RandomTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
