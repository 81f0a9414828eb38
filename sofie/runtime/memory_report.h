// Where a session's memory goes.
#ifndef SOFIE_RUNTIME_MEMORY_REPORT_H_
#define SOFIE_RUNTIME_MEMORY_REPORT_H_

#include <cstddef>
#include <cstdint>

namespace sofie {

// All sizes in bytes.
struct MemoryReport {
  size_t weights = 0;            // shared by the sessions on one device
  size_t weights_allocated = 0;  // of those, allocated; 0 where they are read in place
  size_t arena = 0;              // the session's block, workspace included
  size_t workspace = 0;          // for library calls
  size_t host_staging = 0;       // outputs for callers that use host memory
  size_t sliced_outputs = 0;     // outputs of a session that runs its batches in slices
  size_t copied = 0;             // of the last run's inputs and outputs; the rest was in place
  size_t limit = 0;              // SessionOptions::memory_limit, 0 for none
  int64_t slice_rows = 0;        // of the batch that was cut last, 0 if none was
  // The plan used last, 0 before the first run.
  size_t plan_packed = 0;     // arena bytes it needs, without workspace
  size_t plan_unpacked = 0;   // the same if no two buffers shared memory
  int64_t graph_nodes = 0;    // of its captured graph
  int64_t graph_kernels = 0;  // of these, kernels of its steps
  int plans = 0;              // in the cache
  int graphs = 0;             // of those, captured
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_MEMORY_REPORT_H_
