// How kernels get onto an accelerator: blocks of one thread on the CPU, a queue on the GPU.
#ifndef SOFIE_RUNTIME_KERNELS_LAUNCH_H_
#define SOFIE_RUNTIME_KERNELS_LAUNCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
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

inline void CheckCall(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(std::string(call) + " failed: " + cudaGetErrorString(status));
}

// Whether all GPUs that this source is compiled for have tensor cores for both types of 16 bits, or
// wgmma: kernels that do without are not compiled then.
constexpr bool ArchitecturesAre(int least, int most) {
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    if (architecture < least || architecture > most) return false;
  }
  return true;
}
inline constexpr bool kOnlyTensorCores = ArchitecturesAre(800, std::numeric_limits<int>::max());
#if defined(SOFIE_SM_90A)
inline constexpr bool kOnlyWarpgroups = ArchitecturesAre(900, 900);
#else
inline constexpr bool kOnlyWarpgroups = false;
#endif

// What launches need to know of a GPU.
struct GpuLimits : alpaka_version::Limits {
  int shared_bytes;  // that one block can have
  bool overlaps;     // a kernel can be launched before the one ahead of it has ended
  bool warpgroups;   // the device has wgmma, and this source is compiled for it
};

// The limits of the context's device, asked once for each context.
inline const GpuLimits& LimitsOf(LaunchContext& context) {
  std::shared_ptr<void>& state = context.launcher_state();
  if (state == nullptr) {
    const int device = context.device_index();
    GpuLimits limits = {
        alpaka_version::LimitsOf<Cuda::Acc<alpaka_version::Dim>>(static_cast<uint32_t>(device)), 0,
        false, false};
    int major = 0;
    int minor = 0;
    CheckCall(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "cudaDeviceGetAttribute");
    CheckCall(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
              "cudaDeviceGetAttribute");
    CheckCall(cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                     device),
              "cudaDeviceGetAttribute");
    limits.overlaps = major >= 9;
#if defined(SOFIE_SM_90A)
    limits.warpgroups = major == 9 && minor == 0;
#endif
    state = std::make_shared<GpuLimits>(limits);
  }
  return *static_cast<const GpuLimits*>(state.get());
}

// Lets the queue's next kernel be launched, whose blocks take what this kernel's leave free, then
// waits until the kernel ahead has ended and its results can be read. Every thread of every kernel
// calls this before it reads what a kernel may have written, and before it writes: so when a kernel
// has ended, all those ahead of it have.
__device__ __forceinline__ void WaitForKernelAhead() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A block gets more shared memory than this only if its kernel is set to.
inline constexpr int kUsualSharedBytes = 48 * 1024;

// Puts a kernel, which calls WaitForKernelAhead, into the context's queue; `cluster` blocks along y
// are a cluster. Steps that are timed do not overlap, and the first kernel of a run does not
// overlap what others put into the queue.
inline void LaunchKernel(LaunchContext& context, const KernelLaunch& kernel, uint32_t cluster) {
  LaunchObserver* const observer = context.observer();
  if (observer != nullptr && !observer->launches()) return observer->OnKernel(kernel);
  const auto shared_bytes = static_cast<int>(kernel.shared_bytes);
  if (shared_bytes > kUsualSharedBytes) {
    CheckCall(cudaFuncSetAttribute(kernel.entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes),
              "cudaFuncSetAttribute");
  }
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kernel.blocks[0], kernel.blocks[1], kernel.blocks[2]);
  config.blockDim = dim3(kernel.threads);
  config.dynamicSmemBytes = kernel.shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.queue());
  config.attrs = attributes;
  const bool is_first = context.TakeFirst();
  if (!is_first && context.hook() == nullptr && LimitsOf(context).overlaps) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& dimension = attributes[config.numAttrs++];
    dimension.id = cudaLaunchAttributeClusterDimension;
    dimension.val.clusterDim.x = 1;
    dimension.val.clusterDim.y = cluster;
    dimension.val.clusterDim.z = 1;
  }
  void* arguments[] = {const_cast<std::byte*>(kernel.argument.data())};
  CheckCall(cudaLaunchKernelExC(&config, kernel.entry, arguments), "kernel launch");
  if (observer != nullptr) observer->OnKernel(kernel);
}
template <class Kernel>
void LaunchKernel(LaunchContext& context, const void* entry, dim3 blocks, int shared_bytes,
                  const Kernel& kernel, uint32_t threads = kBlockThreads, uint32_t cluster = 1) {
  LaunchKernel(context,
               {.entry = entry,
                .blocks = {blocks.x, blocks.y, blocks.z},
                .threads = threads,
                .shared_bytes = static_cast<uint32_t>(shared_bytes),
                .argument = std::as_bytes(std::span(&kernel, 1))},
               cluster);
}

// The entry point of every GPU kernel: its symbol carries the kernel's name, and through it the
// name of the generated functor. alpaka's own entry takes its stream from an alpaka queue, which
// cannot be made from an existing stream, and knows no launch bounds.
template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads) Entry(const __grid_constant__ Kernel kernel) {
  WaitForKernelAhead();
  const Cuda::Acc<alpaka_version::Dim> acc(alpaka_version::Vec(alpaka_version::Idx{1}));
  kernel(acc);
}

// Puts a kernel for `blocks` blocks' worth of work into the context's queue, with at most
// `blocks_per_multiprocessor` blocks for each: kernels loop over what is left.
template <class Kernel>
void LaunchBlocks(LaunchContext& context, int64_t blocks, int64_t blocks_per_multiprocessor,
                  const Kernel& kernel) {
  const GpuLimits& limits = LimitsOf(context);
  if (limits.threads_per_block < kBlockThreads) {
    throw BackendError("the device takes only " + std::to_string(limits.threads_per_block) +
                       " threads per block; the kernels need " + std::to_string(kBlockThreads));
  }
  const int64_t most = blocks_per_multiprocessor * limits.multiprocessors;
  LaunchKernel(context, reinterpret_cast<const void*>(&Entry<Kernel>),
               dim3(static_cast<uint32_t>(std::min(blocks, most))), 0, kernel);
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
