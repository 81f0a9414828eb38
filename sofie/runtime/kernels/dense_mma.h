// Tensor-core products of float matrices whose elements are held in parts of 16 bits: bfloat16, or
// one float16 each in that precision.
//
// A float has 24 significant bits, a bfloat16 8 and the same exponents: three parts hold a float
// exactly. A product of two floats is then the sum of the parts' products, of which those below
// 2^-24 of the whole are left out. Tensor cores add in float but truncate, an error that grows with
// the number of additions; so no more than 16 products are summed there, and the sums are added by
// rounding instructions. The result is closer to the exact one than a chain of fused
// multiply-additions.
//
// Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations", ARITH 2019. Ootomo and Yokota, "Recovering single precision
// accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", IJHPCA 2022.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_MMA_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_MMA_H_

#include <cstdint>

#include "sofie/runtime/kernels/dense_shape.h"
#include "sofie/runtime/precision.h"

namespace sofie::kernels {

// The products of parts that count, smallest first: part `a` of the left element, `b` of the right.
struct PartProduct {
  int a;
  int b;
};
template <int kParts>
struct PartProducts;
template <>
struct PartProducts<1> {
  static constexpr int kCount = 1;
  __device__ static constexpr PartProduct At(int) { return {0, 0}; }
};
template <>
struct PartProducts<2> {
  static constexpr int kCount = 3;
  __device__ static constexpr PartProduct At(int i) {
    constexpr PartProduct kProducts[] = {{1, 0}, {0, 1}, {0, 0}};
    return kProducts[i];
  }
};
template <>
struct PartProducts<3> {
  static constexpr int kCount = 6;
  __device__ static constexpr PartProduct At(int i) {
    constexpr PartProduct kProducts[] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
    return kProducts[i];
  }
};

// Splits x and y; each word holds a part of x in its lower half and one of y in its upper half.
template <Precision kPrecision>
__device__ __forceinline__ void Split(float x, float y, uint32_t (&words)[PartsOf(kPrecision)]) {
  if constexpr (kPrecision == Precision::kFloat16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words[0]) : "f"(y), "f"(x));
  } else {
#pragma unroll
    for (int p = 0; p < PartsOf(kPrecision); ++p) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words[p]) : "f"(y), "f"(x));
      x -= __uint_as_float(words[p] << 16);
      y -= __uint_as_float(words[p] & 0xffff0000u);
    }
  }
}

// d[16, 8] += a[16, 16] · b[16, 8] by a warp. Lane l holds of a the rows l/4 and l/4 + 8, of b and
// d the columns l/4, and l%4 · 2 + {0, 1}, as PTX lays them out.
template <Precision kPrecision>
__device__ __forceinline__ void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  if constexpr (kPrecision == Precision::kFloat16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 matrices of 16-bit elements, the fragment of a 16 x 16 one. Lane l gives the address
// of row l%8 of matrix l/8.
__device__ __forceinline__ void LoadFragment(uint32_t (&a)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address)
               : "memory");
}

// The same of the transposed matrices.
__device__ __forceinline__ void LoadTransposed(uint32_t (&a)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address)
               : "memory");
}

// Starts to copy 16 or 4 bytes to shared memory: `bytes` from `source`, then zeros.
__device__ __forceinline__ void CopyAsync16(uint32_t to, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(source), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void CopyAsync4(uint32_t to, const void* source, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(source), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for the thread's copies, except those of its last `kPending` commits.
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_MMA_H_
