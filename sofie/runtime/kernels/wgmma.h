// Hopper's products of 64 rows by a warpgroup, and the copies and barriers that feed them. Only
// code that is compiled for sm_90a has them.
#ifndef SOFIE_RUNTIME_KERNELS_WGMMA_H_
#define SOFIE_RUNTIME_KERNELS_WGMMA_H_

#include <cstdint>

#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/precision.h"

namespace sofie::kernels {

// A right operand of 16 rows (k) and any number of columns (n) in shared memory: matrices of 8
// columns, 8 elements of 16 bits each, one column after the other; of 8 columns the two matrices of
// k = 0 … 7 and 8 … 15, then the next 8 columns. PTX: a K-major matrix without swizzling.
__device__ __forceinline__ uint64_t RightOperand(uint32_t shared_address) {
  constexpr uint64_t kNextK = 128;  // bytes from one matrix to that of the next 8 k
  constexpr uint64_t kNextN = 256;  // and of the next 8 columns
  return shared_address / 16 | kNextK / 16 << 16 | kNextN / 16 << 32;
}

// Before the first product, and where registers of products to come have been written.
__device__ __forceinline__ void FenceProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for the products of all commits.
__device__ __forceinline__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// d[64, 64] (+)= a[64, 16] · b[16, 64] by a warpgroup, in its own time. Warp w has rows 16 w …
// 16 w + 15 of a and d, in fragments as MultiplyAdd's; d's columns 8 j … 8 j + 7 are d[4 j] …
// d[4 j + 3]. Without `add`, d is overwritten.
template <Precision kPrecision>
__device__ __forceinline__ void MultiplyGroup(float (&d)[32], const uint32_t (&a)[4], uint64_t b,
                                              bool add) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kPrecision == Precision::kFloat16) {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %37, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, add, 1, 1, 0;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
  } else {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %37, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, add, 1, 1, 0;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
  }
#endif
}

// Leaves the threads of a warpgroup kRegisters registers each, a multiple of 8; the others can take
// what is left over.
template <int kRegisters>
__device__ __forceinline__ void GiveRegisters() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ __forceinline__ void TakeRegisters() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

// Barriers in shared memory, for arrivals of threads and of copied bytes. Phases are counted by
// their parity, from 0.
__device__ __forceinline__ void MakeBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes barriers known to the copy engine; other threads need a barrier of the block besides.
__device__ __forceinline__ void FenceBarriers() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void Arrive(uint32_t barrier) {
  asm volatile("{.reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0];}" ::"r"(barrier)
               : "memory");
}
__device__ __forceinline__ void WaitForPhase(uint32_t barrier, uint32_t parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{.reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;"
        "selp.b32 %0, 1, 0, done;}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
#endif
}
// Arrives, and lets the phase end when `bytes` have been copied too.
__device__ __forceinline__ void ArriveBeforeCopies(uint32_t barrier, uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{.reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(
          barrier),
      "r"(bytes)
      : "memory");
#endif
}
// Copies a multiple of 16 bytes, aligned to 16, from global to shared memory.
__device__ __forceinline__ void CopyBulk(uint32_t to, const void* from, uint32_t bytes,
                                         uint32_t barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#endif
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_WGMMA_H_
