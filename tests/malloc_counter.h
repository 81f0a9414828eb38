// Replaces the C library's allocation functions, to count what a test takes from the heap: operator
// new and all libraries included.
#ifndef TESTS_MALLOC_COUNTER_H_
#define TESTS_MALLOC_COUNTER_H_

#include <cstdint>

namespace sofie::model_testing {

// Allocations made by all threads of the process since it began.
int64_t MallocCalls();

}  // namespace sofie::model_testing

#endif  // TESTS_MALLOC_COUNTER_H_
