#include "tests/malloc_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace sofie::model_testing {
namespace {

std::atomic<int64_t> calls = 0;

}  // namespace

int64_t MallocCalls() { return calls; }

}  // namespace sofie::model_testing

// glibc's own names of what is replaced here. Its free() stays, and takes what they return.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* data, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++sofie::model_testing::calls;
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  ++sofie::model_testing::calls;
  return __libc_calloc(count, bytes);
}

void* realloc(void* data, size_t bytes) {
  ++sofie::model_testing::calls;
  return __libc_realloc(data, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  ++sofie::model_testing::calls;
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** data, size_t alignment, size_t bytes) {
  *data = memalign(alignment, bytes);
  return *data == nullptr ? ENOMEM : 0;
}

}  // extern "C"
