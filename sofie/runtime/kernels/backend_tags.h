// The backends as types, to template kernels and launches on. A tag's accelerator and queue exist
// in translation units that have alpaka's accelerator (sofie/runtime/alpaka/version.h).
#ifndef SOFIE_RUNTIME_KERNELS_BACKEND_TAGS_H_
#define SOFIE_RUNTIME_KERNELS_BACKEND_TAGS_H_

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/device.h"

namespace sofie::kernels {

struct CpuSerial {
  static constexpr bool kGpu = false;
  static constexpr Backend kBackend = Backend::kCpu;
#ifdef ALPAKA_ACC_CPU_B_SEQ_T_SEQ_ENABLED
  template <class Dim>
  using Acc = ::alpaka::AccCpuSerial<Dim, alpaka_version::Idx>;
  using Queue = ::alpaka::QueueCpuBlocking;
#endif
};

struct CpuOpenMp {
  static constexpr bool kGpu = false;
  static constexpr Backend kBackend = Backend::kOpenMp;
#ifdef ALPAKA_ACC_CPU_B_OMP2_T_SEQ_ENABLED
  template <class Dim>
  using Acc = ::alpaka::AccCpuOmp2Blocks<Dim, alpaka_version::Idx>;
  using Queue = ::alpaka::QueueCpuBlocking;
#endif
};

struct Cuda {
  static constexpr bool kGpu = true;
  static constexpr Backend kBackend = Backend::kCuda;
#ifdef ALPAKA_ACC_GPU_CUDA_ENABLED
  template <class Dim>
  using Acc = ::alpaka::AccGpuCudaRt<Dim, alpaka_version::Idx>;
  using Queue = ::alpaka::QueueCudaRtNonBlocking;
#endif
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_BACKEND_TAGS_H_
