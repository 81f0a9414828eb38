// Matrix products with bias and activation, on OpenBLAS and cuBLASLt. Plain C++: no BLAS headers.
#ifndef SOFIE_RUNTIME_BLAS_BLAS_H_
#define SOFIE_RUNTIME_BLAS_BLAS_H_

#include <cstdint>
#include <memory>
#include <type_traits>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/float16.h"
#include "sofie/runtime/precision.h"

namespace sofie {

// What is applied to alpha · op(A) · op(B) + beta · D + bias. Gelu is the exact one, with erf.
enum class Epilogue : uint8_t { kNone, kRelu, kGelu };

// D[m, n] = epilogue(alpha · op(A)[m, k] · op(B)[k, n] + beta · D + bias), for each of `batch`
// matrices. Everything is row-major: op(A) = A[m, k] with lda ≥ k, or, if trans_a, the transpose
// of A[k, m] with lda ≥ m; op(B) = B[k, n] with ldb ≥ n, or the transpose of B[n, k] with
// ldb ≥ k; ldd ≥ n. Strides are the elements between successive matrices of a batch; 0 for A or B
// means that all share the operand. D overlaps nothing. With beta == 0 the old D is not read.
// With k == 0 the product is zero. T is float, double, Float16 or BFloat16. those of the
// 16-bit types are summed, with all that follows, in float and rounded once. `precision` is of
// float products alone.
template <class T>
struct GemmArgs {
  // What is computed in.
  using Scalar = std::conditional_t<std::is_same_v<T, double>, double, float>;

  const T* a = nullptr;
  const T* b = nullptr;
  T* d = nullptr;
  const T* bias = nullptr;  // length n, added to every row; null means none
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldd = 0;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_d = 0;
  bool trans_a = false;
  bool trans_b = false;
  Scalar alpha = 1;
  Scalar beta = 0;
  Epilogue epilogue = Epilogue::kNone;
  Precision precision = Precision::kFloat32;
};

// What the launcher calls: a Blas with products of all precisions.
class GemmBlas : public Blas {
 public:
  // What is left to the caller: cuBLASLt has no exact Gelu, in double precision no epilogue at all,
  // and takes no product over nothing.
  struct Rest {
    bool scale = false;                   // multiply D by beta; set it to 0, unread, if beta is 0
    bool bias = false;                    // then add the bias
    Epilogue epilogue = Epilogue::kNone;  // then apply this

    bool any() const { return scale || bias || epilogue != Epilogue::kNone; }
  };
  // Puts the product into the context's queue.
  virtual Rest Gemm(LaunchContext& context, const GemmArgs<float>& args) = 0;
  virtual Rest Gemm(LaunchContext& context, const GemmArgs<double>& args) = 0;
  virtual Rest Gemm(LaunchContext& context, const GemmArgs<Float16>& args) = 0;
  virtual Rest Gemm(LaunchContext& context, const GemmArgs<BFloat16>& args) = 0;
};

// Throws ArgumentError, naming the argument, unless the arguments describe valid matrices.
// Libraries end the process or corrupt memory on such arguments, so every implementation calls this
// first.
template <class T>
void ValidateGemm(const GemmArgs<T>& args);

// True if there is nothing to compute.
template <class T>
bool IsEmpty(const GemmArgs<T>& args) {
  return args.m == 0 || args.n == 0 || args.batch == 0;
}

// A batch that shares B and whose A and D follow each other without gaps is one taller product.
template <class T>
GemmArgs<T> FoldBatch(const GemmArgs<T>& args);

// The product on OpenBLAS in the calling thread, for kernels that share their work among threads
// themselves. The arguments must be valid, their extents at most INT32_MAX, and the Blas of some
// CPU context must exist.
void GemmInThread(const GemmArgs<float>& args);
void GemmInThread(const GemmArgs<double>& args);

// OpenBLAS, in up to `threads` OpenMP threads, each on a share of the rows or of the batch.
std::unique_ptr<Blas> NewCpuBlas(int threads);
// cuBLASLt on CUDA device `device_index`, in `stream` (a cudaStream_t). Descriptors and algorithms
// are kept by shape: a shape that was run before allocates nothing. Uses the context's workspace.
// Throws DeviceError if cuBLASLt fails.
std::unique_ptr<Blas> NewCudaBlas(int device_index, void* stream);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_BLAS_BLAS_H_
