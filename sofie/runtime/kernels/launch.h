// How kernels get onto an accelerator: blocks of one thread on the CPU, a queue on the GPU.
#ifndef SOFIE_RUNTIME_KERNELS_LAUNCH_H_
#define SOFIE_RUNTIME_KERNELS_LAUNCH_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/backend_tags.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace sofie::kernels {

// The limits of the context's device, asked once for each context.
template <class B>
const alpaka_version::Limits& LimitsOf(LaunchContext& context) {
  std::shared_ptr<void>& state = context.launcher_state();
  if (state == nullptr) {
    state = std::make_shared<alpaka_version::Limits>(
        alpaka_version::LimitsOf<typename B::template Acc<alpaka_version::Dim>>(
            static_cast<uint32_t>(context.device_index())));
  }
  return *static_cast<const alpaka_version::Limits*>(state.get());
}

#if !defined(__CUDACC__)

// Fewer element operations than this are not worth waking other threads for.
inline constexpr int64_t kParallelElements = 16384;

// A CPU kernel has `void Run(int64_t begin, int64_t end) const` for a range of its work units; each
// block takes an equal share of them.
template <class Kernel>
struct UnitsPerBlock {
  Kernel kernel;
  int64_t units;

  template <class Acc>
  ALPAKA_FN_ACC void operator()(const Acc& acc) const {
    const int64_t block = ::alpaka::getIdx<::alpaka::Grid, ::alpaka::Blocks>(acc)[0];
    const int64_t blocks = ::alpaka::getWorkDiv<::alpaka::Grid, ::alpaka::Blocks>(acc)[0];
    const int64_t share = units / blocks;
    const int64_t rest = units % blocks;
    const int64_t begin = block * share + std::min(block, rest);
    kernel.Run(begin, begin + share + (block < rest ? 1 : 0));
  }
};

// Runs `units` units of a kernel that does about `elements` element operations in all.
template <class B, class Kernel>
void LaunchUnits(LaunchContext& context, int64_t units, int64_t elements, const Kernel& kernel) {
  static_assert(!B::kGpu);
  using alpaka_version::Dim;
#if defined(_OPENMP)
  if constexpr (B::kBackend == Backend::kOpenMp) {
    const int64_t blocks = std::min<int64_t>(units, context.threads());
    // Inside of the caller's parallel region alpaka would share the blocks with that region's other
    // threads, which do not run this kernel.
    if (blocks > 1 && elements >= kParallelElements && omp_in_parallel() == 0) {
      const int before = omp_get_max_threads();
      if (before != context.threads()) omp_set_num_threads(context.threads());
      alpaka_version::RunOnCpu<CpuOpenMp::Acc<Dim>>(static_cast<uint32_t>(blocks),
                                                    UnitsPerBlock<Kernel>{kernel, units});
      if (before != context.threads()) omp_set_num_threads(before);
      return;
    }
  }
#else
  static_assert(B::kBackend == Backend::kCpu, "compile the OpenMP backend with -fopenmp");
  static_cast<void>(context);
  static_cast<void>(elements);
#endif
  alpaka_version::RunOnCpu<CpuSerial::Acc<Dim>>(1, UnitsPerBlock<Kernel>{kernel, units});
}

#else  // defined(__CUDACC__)

// Threads of a GPU block. Kernels count on it; LaunchBlocks refuses devices that have fewer.
inline constexpr uint32_t kBlockThreads = 256;

// The entry point of every GPU kernel: its symbol carries the kernel's name, and through it the
// name of the generated functor. alpaka's own entry takes its stream from an alpaka queue, which
// cannot be made from an existing stream, and knows no launch bounds.
template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads) Entry(const __grid_constant__ Kernel kernel) {
  const Cuda::Acc<alpaka_version::Dim> acc(alpaka_version::Vec(alpaka_version::Idx{1}));
  kernel(acc);
}

// Puts a kernel for `blocks` blocks' worth of work into the context's queue, with at most
// `blocks_per_multiprocessor` blocks for each: kernels loop over what is left.
template <class Kernel>
void LaunchBlocks(LaunchContext& context, int64_t blocks, int64_t blocks_per_multiprocessor,
                  const Kernel& kernel) {
  const alpaka_version::Limits& limits = LimitsOf<Cuda>(context);
  if (limits.threads_per_block < kBlockThreads) {
    throw BackendError("the device takes only " + std::to_string(limits.threads_per_block) +
                       " threads per block; the kernels need " + std::to_string(kBlockThreads));
  }
  const int64_t most = blocks_per_multiprocessor * limits.multiprocessors;
  void* arguments[] = {const_cast<Kernel*>(&kernel)};
  const cudaError_t status = cudaLaunchKernel(
      reinterpret_cast<const void*>(&Entry<Kernel>), dim3(std::min(blocks, most)),
      dim3(kBlockThreads), arguments, 0, static_cast<cudaStream_t>(context.queue()));
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw DeviceError(std::string("kernel launch failed: ") + cudaGetErrorString(status));
  }
}

// The block, the thread and the number of blocks, as numbers.
template <class Acc>
ALPAKA_FN_ACC ALPAKA_FN_INLINE uint32_t BlockIndex(const Acc& acc) {
  return ::alpaka::getIdx<::alpaka::Grid, ::alpaka::Blocks>(acc)[0];
}
template <class Acc>
ALPAKA_FN_ACC ALPAKA_FN_INLINE uint32_t ThreadIndex(const Acc& acc) {
  return ::alpaka::getIdx<::alpaka::Block, ::alpaka::Threads>(acc)[0];
}
template <class Acc>
ALPAKA_FN_ACC ALPAKA_FN_INLINE uint32_t BlockCount(const Acc& acc) {
  return ::alpaka::getWorkDiv<::alpaka::Grid, ::alpaka::Blocks>(acc)[0];
}

#endif  // defined(__CUDACC__)

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_LAUNCH_H_
