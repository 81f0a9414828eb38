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

using RandomTest = BackendTest;

TEST_P(RandomTest, EqualSeedsGiveEqualNumbersRunByRun) {
  random_model::Session a(device(), {.random_seed = 5});
  random_model::Session b(device(), {.random_seed = 5});
  for (const int64_t rows : {4, 100, 0, 1, 4}) EXPECT_EQ(Draw(a, rows), Draw(b, rows));
}

// By the Philox generator of the interpreter of programs, sofie/testing/math_functions.py.
TEST_P(RandomTest, ASeedOfTheModelGivesTheSameNumbersEverywhere) {
  random_model::Session session(device(), {.random_seed = 5});
  const std::vector<float> expected = {0.7338684f, -0.5005159f, -0.7199203f,
                                       0.590251f,  -1.625131f,  0.5301889f};
  const std::vector<float> found = Draw(session, 2).seeded;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

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
