#include "sofie/runtime/plan_cache.h"

#include <algorithm>
#include <utility>

namespace sofie {

size_t PlanCache::Hash::operator()(std::span<const int64_t> symbols) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over 64-bit words
  for (int64_t symbol : symbols) {
    hash = (hash ^ static_cast<uint64_t>(symbol)) * 0x100000001b3;
    hash ^= hash >> 29;  // spreads the high bits, which FNV leaves to later bytes
  }
  return hash;
}

bool PlanCache::Equal::operator()(std::span<const int64_t> a, std::span<const int64_t> b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

Plan* PlanCache::Find(std::span<const int64_t> symbols) {
  const auto found = index_.find(symbols);
  if (found == index_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found->second);
  return &plans_.front();
}

Plan& PlanCache::Insert(Plan plan) {
  plans_.push_front(std::move(plan));
  try {
    index_.emplace(plans_.front().symbols, plans_.begin());
  } catch (...) {
    plans_.pop_front();
    throw;
  }
  if (plans_.size() > capacity_) {
    index_.erase(plans_.back().symbols);
    plans_.pop_back();
  }
  return plans_.front();
}

}  // namespace sofie
