// Several copies within a GPU's memory as one kernel, for graphs: one node in place of a node per
// copy, whose parameters can change from launch to launch. Plain C++.
#ifndef SOFIE_RUNTIME_BACKEND_CUDA_COPY_H_
#define SOFIE_RUNTIME_BACKEND_CUDA_COPY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "sofie/runtime/backend.h"

namespace sofie {

// The most copies that one kernel makes.
inline constexpr size_t kCopiesPerKernel = 16;

// The kernel's parameter, by value. Addresses and sizes are of any alignment.
struct CopyBatch {
  DeviceCopy copies[kCopiesPerKernel];  // those of 0 bytes are the last

  bool operator==(const CopyBatch&) const = default;
};

// At most kCopiesPerKernel copies.
CopyBatch NewCopyBatch(std::span<const DeviceCopy> copies);

// The kernel that makes the copies of `batch`, none of which may overlap. The result points to
// `arguments` and that to `batch`: both must outlive it.
cudaKernelNodeParams CopyKernel(CopyBatch& batch, void* (&arguments)[1]);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_BACKEND_CUDA_COPY_H_
