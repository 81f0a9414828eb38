// Hopper's products of 64 rows by a warpgroup, and the copies and barriers that feed them. Only
// code that is compiled for sm_90a has them.
#ifndef SOFIE_RUNTIME_KERNELS_WGMMA_H_
#define SOFIE_RUNTIME_KERNELS_WGMMA_H_

#include <cstdint>

#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/precision.h"

namespace sofie::kernels {

// Where an operand is, in a descriptor. A shared address has the block's rank in its cluster above
// the 18 bits that count.
__device__ __forceinline__ uint64_t OperandStart(uint32_t shared_address) {
  return (shared_address & 0x3ffff) / 16;
}

// A right operand of 16 rows (k) and any number of columns (n) in shared memory: matrices of 8
// columns, 8 elements of 16 bits each, one column after the other; of 8 columns the two matrices of
// k = 0 … 7 and 8 … 15, then the next 8 columns. PTX: a K-major matrix without swizzling.
__device__ __forceinline__ uint64_t RightOperand(uint32_t shared_address) {
  constexpr uint64_t kNextK = 128;  // bytes from one matrix to that of the next 8 k
  constexpr uint64_t kNextN = 256;  // and of the next 8 columns
  return OperandStart(shared_address) | kNextK / 16 << 16 | kNextN / 16 << 32;
}

// An operand in rows of 128 bytes, whose piece c of 16 bytes is where c ^ r % 8 would be in row r;
// eight rows begin at a multiple of 1024. The rows' elements lie along k or, if the operand is
// transposed, are 64 of the other axis. PTX: 128-byte swizzling.
__device__ __forceinline__ uint64_t SwizzledOperand(uint32_t shared_address) {
  constexpr uint64_t kNextRows = 1024;  // bytes from eight rows to the next eight
  return OperandStart(shared_address) | 1 << 16 | kNextRows / 16 << 32 | uint64_t{1} << 62;
}

// Before the first product, and where registers of products to come have been written.
__device__ __forceinline__ void FenceProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for the products of all commits but the last kPending.
template <int kPending = 0>
__device__ __forceinline__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps what is done with sums of products behind the wait for those, where the compiler could move
// it ahead.
template <int kSums>
__device__ __forceinline__ void HoldSums(float (&d)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
// Makes what threads wrote to shared memory known to products and to the copy engine.
__device__ __forceinline__ void FenceSharedMemory() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Parts of the instructions below: sums, which are operands of the instruction from 0 on, and the
// type of the factors, which PTX takes as a word.
#define SOFIE_SUMS_8(d, i)                                                                    \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define SOFIE_SUMS_32(d, i) \
  SOFIE_SUMS_8(d, i), SOFIE_SUMS_8(d, i + 8), SOFIE_SUMS_8(d, i + 16), SOFIE_SUMS_8(d, i + 24)
#define SOFIE_NAMES_32                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SOFIE_NAMES_40 SOFIE_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SOFIE_NAMES_64                                                                           \
  SOFIE_NAMES_40                                                                                 \
  ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
  "%58, %59, %60, %61, %62, %63"
#define SOFIE_FROM_REGISTERS(type, d, a, b, add, transposed)                            \
  asm volatile(                                                                         \
      "{.reg .pred add; setp.ne.b32 add, %37, 0;"                                       \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" SOFIE_NAMES_32   \
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, %38;}"                                  \
      : SOFIE_SUMS_32(d, 0)                                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)), \
        "n"(static_cast<int>(transposed)))
#define SOFIE_FROM_MEMORY(type, columns, names, a_name, b_name, add_name, a, b, add, ...)      \
  asm volatile("{.reg .pred add; setp.ne.b32 add, " add_name                                   \
               ", 0;"                                                                          \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names \
               "}, " a_name ", " b_name ", add, 1, 1, 0, 0;}"                                  \
               : __VA_ARGS__                                                                   \
               : "l"(a), "l"(b), "r"(static_cast<int>(add)))
#define SOFIE_FROM_MEMORY_64(type, d, a, b, add) \
  SOFIE_FROM_MEMORY(type, "64", SOFIE_NAMES_32, "%32", "%33", "%34", a, b, add, SOFIE_SUMS_32(d, 0))
#define SOFIE_FROM_MEMORY_80(type, d, a, b, add)                                \
  SOFIE_FROM_MEMORY(type, "80", SOFIE_NAMES_40, "%40", "%41", "%42", a, b, add, \
                    SOFIE_SUMS_32(d, 0), SOFIE_SUMS_8(d, 32))
#define SOFIE_FROM_MEMORY_128(type, d, a, b, add)                                \
  SOFIE_FROM_MEMORY(type, "128", SOFIE_NAMES_64, "%64", "%65", "%66", a, b, add, \
                    SOFIE_SUMS_32(d, 0), SOFIE_SUMS_32(d, 32))

// d[64, 64] (+)= a[64, 16] · b[16, 64] by a warpgroup, in its own time. Warp w has rows 16 w …
// 16 w + 15 of a and d, in fragments as MultiplyAdd's; d's columns 8 j … 8 j + 7 are d[4 j] …
// d[4 j + 3]. Without `add`, d is overwritten. `kTransposed`: b is, in memory.
template <Precision kPrecision, bool kTransposed = false>
__device__ __forceinline__ void MultiplyGroup(float (&d)[32], const uint32_t (&a)[4], uint64_t b,
                                              bool add) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kPrecision == Precision::kFloat16) {
    SOFIE_FROM_REGISTERS("f16", d, a, b, add, kTransposed);
  } else {
    SOFIE_FROM_REGISTERS("bf16", d, a, b, add, kTransposed);
  }
#endif
}

// The same with all of a[64, 16] in shared memory, for 64, 80 or 128 columns.
template <Precision kPrecision, int kSums>
__device__ __forceinline__ void MultiplyGroup(float (&d)[kSums], uint64_t a, uint64_t b, bool add) {
  constexpr bool kIsHalf = kPrecision == Precision::kFloat16;
  static_assert(kSums == 32 || kSums == 40 || kSums == 64);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kSums == 32 && kIsHalf) {
    SOFIE_FROM_MEMORY_64("f16", d, a, b, add);
  } else if constexpr (kSums == 32) {
    SOFIE_FROM_MEMORY_64("bf16", d, a, b, add);
  } else if constexpr (kSums == 40 && kIsHalf) {
    SOFIE_FROM_MEMORY_80("f16", d, a, b, add);
  } else if constexpr (kSums == 40) {
    SOFIE_FROM_MEMORY_80("bf16", d, a, b, add);
  } else if constexpr (kIsHalf) {
    SOFIE_FROM_MEMORY_128("f16", d, a, b, add);
  } else {
    SOFIE_FROM_MEMORY_128("bf16", d, a, b, add);
  }
#endif
}

#undef SOFIE_SUMS_8
#undef SOFIE_SUMS_32
#undef SOFIE_NAMES_32
#undef SOFIE_NAMES_40
#undef SOFIE_NAMES_64
#undef SOFIE_FROM_REGISTERS
#undef SOFIE_FROM_MEMORY
#undef SOFIE_FROM_MEMORY_64
#undef SOFIE_FROM_MEMORY_80
#undef SOFIE_FROM_MEMORY_128

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
// `kOfCluster`: threads of other blocks of the cluster arrive there too.
template <bool kOfCluster = false>
__device__ __forceinline__ void WaitForPhase(uint32_t barrier, uint32_t parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (done == 0) {
    if constexpr (kOfCluster) {
      asm volatile(
          "{.reg .pred done; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], "
          "%2; selp.b32 %0, 1, 0, done;}"
          : "=r"(done)
          : "r"(barrier), "r"(parity)
          : "memory");
    } else {
      asm volatile(
          "{.reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;"
          "selp.b32 %0, 1, 0, done;}"
          : "=r"(done)
          : "r"(barrier), "r"(parity)
          : "memory");
    }
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
// Arrives once the thread's own copies (CopyAsync16) until here have ended.
__device__ __forceinline__ void ArriveAfterCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
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

// Where, for all blocks of the cluster, is what block `rank` has at an address of its shared
// memory.
__device__ __forceinline__ uint32_t AddressInBlock(uint32_t shared_address, uint32_t rank) {
  uint32_t address = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address), "r"(rank));
#endif
  return address;
}
// Writes to such an address, of 8-byte alignment, and tells a barrier of the same block that 8
// bytes are there. (racecheck follows this, and not a plain write before an arrival.)
__device__ __forceinline__ void StoreInCluster(uint32_t to, uint32_t barrier, float x, float y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];" ::
          "r"(to),
      "r"(barrier), "f"(x), "f"(y)
      : "memory");
#endif
}
// Arrives at a barrier at such an address.
__device__ __forceinline__ void ArriveInCluster(uint32_t barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
#endif
}
// A barrier of all threads of the cluster's blocks.
__device__ __forceinline__ void SynchronizeCluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_WGMMA_H_
