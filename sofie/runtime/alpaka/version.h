// The only header that includes alpaka, and all that differs between its versions: the 1.0
// development version (devices by index) and the releases since 1.0 (devices by platform).
//
// Which accelerators a translation unit has follows from its compiler, unless it was told by
// alpaka's own macros: nvcc gives CUDA, -fopenmp gives OpenMP blocks beside the serial one,
// anything else gives the serial one.
#ifndef SOFIE_RUNTIME_ALPAKA_VERSION_H_
#define SOFIE_RUNTIME_ALPAKA_VERSION_H_

#if defined(__CUDACC__)
#if !defined(ALPAKA_ACC_GPU_CUDA_ENABLED)
#define ALPAKA_ACC_GPU_CUDA_ENABLED
#endif
#if !defined(ALPAKA_DISABLE_VENDOR_RNG)
#define ALPAKA_DISABLE_VENDOR_RNG
#endif
#else
#if !defined(ALPAKA_ACC_CPU_B_SEQ_T_SEQ_ENABLED)
#define ALPAKA_ACC_CPU_B_SEQ_T_SEQ_ENABLED
#endif
#if defined(_OPENMP) && !defined(ALPAKA_ACC_CPU_B_OMP2_T_SEQ_ENABLED)
#define ALPAKA_ACC_CPU_B_OMP2_T_SEQ_ENABLED
#endif
#endif

#include <alpaka/alpaka.hpp>
#include <cstdint>

namespace sofie::alpaka_version {

// Grids and blocks are one-dimensional and counted in 32 bits; what exceeds them is a loop.
using Dim = ::alpaka::DimInt<1u>;
using Idx = uint32_t;
using Vec = ::alpaka::Vec<Dim, Idx>;
using WorkDiv = ::alpaka::WorkDivMembers<Dim, Idx>;

// What work divisions are made of.
struct Limits {
  uint32_t multiprocessors = 1;
  uint32_t threads_per_block = 1;  // the most that a block may have
};

// Device `index` of an accelerator, or of a device's type.
template <class T>
auto DeviceAt(uint32_t index) {
#if __has_include(<alpaka/platform/Traits.hpp>)
  return ::alpaka::getDevByIdx(::alpaka::Platform<T>{}, index);
#else
  return ::alpaka::getDevByIdx<T>(index);
#endif
}

// The limits of that device, from alpaka's device properties.
template <class Acc>
Limits LimitsOf(uint32_t index) {
  const auto device = DeviceAt<Acc>(index);
  const auto properties = ::alpaka::getAccDevProps<Acc>(device);
  return {static_cast<uint32_t>(properties.m_multiProcessorCount),
          static_cast<uint32_t>(properties.m_blockThreadCountMax)};
}

// Runs a kernel on a CPU accelerator, `blocks` blocks of one thread, in the calling thread, and
// returns when it is done. No queue: it would only add a lock.
template <class Acc, class Kernel>
void RunOnCpu(uint32_t blocks, const Kernel& kernel) {
  const WorkDiv division(Vec(blocks), Vec(Idx{1}), Vec(Idx{1}));
  ::alpaka::createTaskKernel<Acc>(division, kernel)();
}

}  // namespace sofie::alpaka_version

#endif  // SOFIE_RUNTIME_ALPAKA_VERSION_H_
