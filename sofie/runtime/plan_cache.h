// What a session keeps for a set of sizes, and a bounded cache of it.
#ifndef SOFIE_RUNTIME_PLAN_CACHE_H_
#define SOFIE_RUNTIME_PLAN_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sofie/runtime/arena.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/view.h"

namespace sofie {

// Of one segment. Bytes and shapes are those of it and of earlier segments.
struct Plan {
  int segment = 0;
  std::vector<int64_t> symbols;  // known when the segment begins
  std::vector<int64_t> buffer_bytes;
  std::vector<Shape> output_shapes;
  ArenaLayout layout;  // of the segment's buffers that lie in its arena
  bool wide = false;   // see LaunchContext::wide
  std::unique_ptr<LaunchGraph> graph;
  std::unique_ptr<LaunchGraph> profiled_graph;  // the same with the profiler's timer
};

// The `capacity` plans used last. Looking one up allocates nothing.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // The plan of these sizes, now the most recently used; null if there is none.
  Plan* Find(std::span<const int64_t> symbols);
  // Adds a plan as the most recently used, in place of the least recently used if full. Its sizes
  // must not be in the cache.
  Plan& Insert(Plan plan);

  size_t size() const { return plans_.size(); }
  // Most recently used first.
  std::list<Plan>& plans() { return plans_; }
  const std::list<Plan>& plans() const { return plans_; }

 private:
  struct Hash {
    size_t operator()(std::span<const int64_t> symbols) const;
  };
  struct Equal {
    bool operator()(std::span<const int64_t> a, std::span<const int64_t> b) const;
  };

  size_t capacity_;
  std::list<Plan> plans_;
  // Keys point into Plan::symbols.
  std::unordered_map<std::span<const int64_t>, std::list<Plan>::iterator, Hash, Equal> index_;
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_PLAN_CACHE_H_
