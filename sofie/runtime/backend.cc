#include "sofie/runtime/backend.h"

#include <mutex>

namespace sofie {
namespace {

std::mutex mutex;
AllocationCounters counters;

}  // namespace

AllocationCounters Allocations() {
  std::lock_guard lock(mutex);
  return counters;
}

void CountAllocation(size_t bytes) {
  std::lock_guard lock(mutex);
  ++counters.allocations;
  counters.live_bytes += static_cast<int64_t>(bytes);
  if (counters.live_bytes > counters.peak_bytes) counters.peak_bytes = counters.live_bytes;
}

void CountFree(size_t bytes) {
  std::lock_guard lock(mutex);
  counters.live_bytes -= static_cast<int64_t>(bytes);
}

}  // namespace sofie
