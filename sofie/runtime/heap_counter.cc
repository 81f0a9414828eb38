#include "sofie/runtime/heap_counter.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace sofie {
namespace {

thread_local int64_t allocations = 0;

void* CountedNew(size_t bytes, size_t alignment) {
  ++allocations;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

int64_t HeapAllocations() { return allocations; }

}  // namespace sofie

void* operator new(size_t bytes) {
  return sofie::CountedNew(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return sofie::CountedNew(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }
