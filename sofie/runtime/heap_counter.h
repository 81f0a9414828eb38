// Replaces operator new, to count what a test takes from the heap.
#ifndef SOFIE_RUNTIME_HEAP_COUNTER_H_
#define SOFIE_RUNTIME_HEAP_COUNTER_H_

#include <cstdint>

namespace sofie {

// Allocations that the calling thread made with operator new since it began.
int64_t HeapAllocations();

}  // namespace sofie

#endif  // SOFIE_RUNTIME_HEAP_COUNTER_H_
