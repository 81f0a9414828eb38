#include "sofie/runtime/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace sofie {
namespace {

bool LiveTogether(const ArenaRequest& a, const ArenaRequest& b) {
  for (int step = a.first_step; step <= a.last_step; ++step) {
    if (step >= b.first_step && step <= b.last_step) return true;
  }
  return false;
}

// The most bytes that are live in any one step: no packing can need fewer.
int64_t LowerBound(const std::vector<ArenaRequest>& requests, int steps) {
  int64_t bound = 0;
  for (int step = 0; step < steps; ++step) {
    int64_t live = 0;
    for (const ArenaRequest& request : requests) {
      if (request.first_step <= step && step <= request.last_step) live += AlignUp(request.bytes);
    }
    bound = std::max(bound, live);
  }
  return bound;
}

void ExpectValid(const std::vector<ArenaRequest>& requests, const ArenaLayout& layout) {
  ASSERT_EQ(layout.offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(layout.offsets[i] % 256, 0);
    EXPECT_GE(layout.offsets[i], 0);
    EXPECT_LE(layout.offsets[i] + requests[i].bytes, layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!LiveTogether(requests[i], requests[j])) continue;
      if (requests[i].bytes == 0 || requests[j].bytes == 0) continue;
      EXPECT_TRUE(layout.offsets[i] + requests[i].bytes <= layout.offsets[j] ||
                  layout.offsets[j] + requests[j].bytes <= layout.offsets[i])
          << "requests " << i << " and " << j << " overlap";
    }
  }
}

TEST(ArenaTest, EmptyNeedsNothing) {
  EXPECT_EQ(PackArena({}).bytes, 0);
  const std::vector<ArenaRequest> requests = {{0, 0, 5}, {0, 1, 2}};
  EXPECT_EQ(PackArena(requests).bytes, 0);
}

TEST(ArenaTest, ChainOfEqualBuffersNeedsTwo) {
  std::vector<ArenaRequest> requests;
  for (int step = 0; step < 20; ++step) requests.push_back({1024, step, step + 1});
  const ArenaLayout layout = PackArena(requests);
  ExpectValid(requests, layout);
  EXPECT_EQ(layout.bytes, 2048);
}

TEST(ArenaTest, SmallBuffersFillTheTightestGap) {
  // a and c live throughout; between them b leaves a gap of 1024 after step 1, and d fits into it.
  const std::vector<ArenaRequest> requests = {{4096, 0, 3}, {1024, 0, 1}, {512, 0, 3}, {700, 2, 3}};
  const ArenaLayout layout = PackArena(requests);
  ExpectValid(requests, layout);
  EXPECT_EQ(layout.offsets[3], layout.offsets[1]);
  EXPECT_EQ(layout.bytes, 4096 + 1024 + 512);
}

TEST(ArenaTest, RandomRequestsNeverOverlapAndShare) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int steps = 1 + static_cast<int>(random() % 40);
    std::vector<ArenaRequest> requests(random() % 60);
    int64_t sum = 0;
    for (ArenaRequest& request : requests) {
      request.bytes = static_cast<int64_t>(random() % 5 == 0 ? 0 : random() % 100000);
      request.first_step = static_cast<int32_t>(random() % steps);
      request.last_step =
          std::min<int32_t>(steps - 1, request.first_step + static_cast<int32_t>(random() % 5));
      sum += AlignUp(request.bytes);
    }
    const ArenaLayout layout = PackArena(requests);
    ExpectValid(requests, layout);
    EXPECT_LE(layout.bytes, sum);
    const int64_t bound = LowerBound(requests, steps);
    EXPECT_GE(layout.bytes, bound);
    EXPECT_LE(layout.bytes, 2 * bound);
    EXPECT_EQ(PackArena(requests).offsets, layout.offsets);
  }
}

}  // namespace
}  // namespace sofie
