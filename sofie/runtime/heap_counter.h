// Replaces operator new, to count what a test takes from the heap, and to make it fail.
#ifndef SOFIE_RUNTIME_HEAP_COUNTER_H_
#define SOFIE_RUNTIME_HEAP_COUNTER_H_

#include <cstdint>

namespace sofie {

// Allocations that the calling thread made with operator new since it began.
int64_t HeapAllocations();

// The calling thread's operator new fails once: after `count` more that succeed. -1: no more.
void FailAllocationAfter(int64_t count);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_HEAP_COUNTER_H_
