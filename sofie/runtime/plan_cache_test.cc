#include "sofie/runtime/plan_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sofie {
namespace {

Plan PlanOf(std::vector<int64_t> symbols) {
  Plan plan;
  plan.symbols = std::move(symbols);
  return plan;
}

bool Has(PlanCache& cache, std::vector<int64_t> symbols) {
  for (const Plan& plan : cache.plans()) {
    if (plan.symbols == symbols) return true;
  }
  return false;
}

TEST(PlanCacheTest, FindsWhatWasInserted) {
  PlanCache cache(4);
  EXPECT_EQ(cache.Find(std::vector<int64_t>{1, 2}), nullptr);
  cache.Insert(PlanOf({1, 2})).wide = true;
  cache.Insert(PlanOf({2, 1}));
  Plan* plan = cache.Find(std::vector<int64_t>{1, 2});
  ASSERT_NE(plan, nullptr);
  EXPECT_TRUE(plan->wide);
  EXPECT_FALSE(cache.Find(std::vector<int64_t>{2, 1})->wide);
  EXPECT_EQ(cache.Find(std::vector<int64_t>{1}), nullptr);
}

TEST(PlanCacheTest, EvictsTheLeastRecentlyUsed) {
  PlanCache cache(3);
  for (int64_t size : {1, 2, 3}) cache.Insert(PlanOf({size}));
  ASSERT_NE(cache.Find(std::vector<int64_t>{1}), nullptr);
  cache.Insert(PlanOf({4}));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_FALSE(Has(cache, {2}));
  EXPECT_TRUE(Has(cache, {1}));
  EXPECT_TRUE(Has(cache, {3}));
  EXPECT_TRUE(Has(cache, {4}));
  EXPECT_EQ(cache.Find(std::vector<int64_t>{2}), nullptr);
  EXPECT_EQ(cache.plans().front().symbols, std::vector<int64_t>{4});
}

TEST(PlanCacheTest, HoldsAPlanWithoutSymbols) {
  PlanCache cache(1);
  cache.Insert(PlanOf({}));
  EXPECT_NE(cache.Find({}), nullptr);
}

TEST(PlanCacheTest, NeverMoreThanItsCapacity) {
  PlanCache cache(5);
  for (int64_t size = 0; size < 1000; ++size) {
    cache.Insert(PlanOf({size, size * size}));
    ASSERT_LE(cache.size(), 5u);
    ASSERT_NE(cache.Find(std::vector<int64_t>{size, size * size}), nullptr);
  }
}

}  // namespace
}  // namespace sofie
