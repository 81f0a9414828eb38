#include "sofie/runtime/heap_counter.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace sofie {
namespace {

thread_local int64_t allocations = 0;
thread_local int64_t until_failure = -1;

void* CountedNew(size_t bytes, size_t alignment) {
  if (until_failure >= 0 && until_failure-- == 0) return nullptr;
  ++allocations;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  return rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
}

void* OrThrow(void* data) {
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

constexpr size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

int64_t HeapAllocations() { return allocations; }
void FailAllocationAfter(int64_t count) { until_failure = count; }

}  // namespace sofie

void* operator new(size_t bytes) {
  return sofie::OrThrow(sofie::CountedNew(bytes, sofie::kDefaultAlignment));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return sofie::OrThrow(sofie::CountedNew(bytes, static_cast<size_t>(alignment)));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return sofie::CountedNew(bytes, sofie::kDefaultAlignment);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return sofie::CountedNew(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }
