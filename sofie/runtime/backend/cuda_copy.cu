#include <algorithm>
#include <cstdint>

#include "sofie/runtime/backend/cuda_copy.h"

namespace sofie {
namespace cuda_copy {

constexpr unsigned kThreads = 256;
// Enough blocks to keep a GPU's memory busy; larger copies are loops.
constexpr size_t kMaxBlocks = 1024;

// Copies as many whole `Word`s as there are, from this thread's first on; the rest as bytes.
template <typename Word>
__device__ void CopyWords(const DeviceCopy& copy, size_t thread, size_t threads) {
  const size_t words = copy.bytes / sizeof(Word);
  for (size_t i = thread; i < words; i += threads) {
    static_cast<Word*>(copy.to)[i] = static_cast<const Word*>(copy.from)[i];
  }
  for (size_t i = words * sizeof(Word) + thread; i < copy.bytes; i += threads) {
    static_cast<char*>(copy.to)[i] = static_cast<const char*>(copy.from)[i];
  }
}

// Block (x, y) works on the copy y.
__global__ void __launch_bounds__(kThreads) Copy(const __grid_constant__ CopyBatch batch) {
  const DeviceCopy& copy = batch.copies[blockIdx.y];
  const size_t thread = size_t{blockIdx.x} * kThreads + threadIdx.x;
  const size_t threads = size_t{gridDim.x} * kThreads;
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from);
  if (bits % sizeof(uint4) == 0) {
    CopyWords<uint4>(copy, thread, threads);
  } else if (bits % sizeof(uint32_t) == 0) {
    CopyWords<uint32_t>(copy, thread, threads);
  } else {
    CopyWords<uint8_t>(copy, thread, threads);
  }
}

}  // namespace cuda_copy

CopyBatch NewCopyBatch(std::span<const DeviceCopy> copies) {
  CopyBatch batch = {};
  std::copy_if(copies.begin(), copies.end(), batch.copies,
               [](const DeviceCopy& copy) { return copy.bytes > 0; });
  return batch;
}

cudaKernelNodeParams CopyKernel(CopyBatch& batch, void* (&arguments)[1]) {
  size_t most = 0;
  unsigned count = 0;
  for (const DeviceCopy& copy : batch.copies) {
    most = std::max(most, copy.bytes);
    count += copy.bytes > 0;
  }
  constexpr size_t kBytesPerBlock = cuda_copy::kThreads * sizeof(uint4);
  const size_t blocks =
      std::min((most + kBytesPerBlock - 1) / kBytesPerBlock, cuda_copy::kMaxBlocks);
  arguments[0] = &batch;
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(&cuda_copy::Copy);
  params.gridDim = dim3(static_cast<unsigned>(std::max<size_t>(blocks, 1)), std::max(count, 1u));
  params.blockDim = dim3(cuda_copy::kThreads);
  params.kernelParams = arguments;
  return params;
}

}  // namespace sofie
