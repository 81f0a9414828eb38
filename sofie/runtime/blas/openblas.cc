// Matrix products on OpenBLAS. OpenBLAS itself is held to one thread: the OpenMP threads of the
// backend each call it on their share.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/vector_math.h"

namespace sofie {
namespace {

// Bytes of the result that are computed before bias and activation go over them: they should
// still be in the second-level cache then.
constexpr int64_t kPanelBytes = 256 * 1024;
// The most that OpenBLAS can index in one call.
constexpr int64_t kMost = std::numeric_limits<blasint>::max();
// Fewer multiplications than this are not worth waking other threads for.
constexpr int64_t kParallelProducts = 64 * 64 * 64;

float Erf(float x) { return vector_math::Erf(x); }
double Erf(double x) { return std::erf(x); }

// Rows [first_row, first_row + rows) of one matrix of the batch, all of k and n.
template <class T>
struct Block {
  const T* a;
  const T* b;
  T* d;
  int64_t rows;
};

void Multiply(const GemmArgs<float>& args, const Block<float>& block) {
  scipy_cblas_sgemm(CblasRowMajor, args.trans_a ? CblasTrans : CblasNoTrans,
                    args.trans_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(block.rows),
                    static_cast<blasint>(args.n), static_cast<blasint>(args.k), args.alpha, block.a,
                    static_cast<blasint>(args.lda), block.b, static_cast<blasint>(args.ldb),
                    args.beta, block.d, static_cast<blasint>(args.ldd));
}

void Multiply(const GemmArgs<double>& args, const Block<double>& block) {
  scipy_cblas_dgemm(CblasRowMajor, args.trans_a ? CblasTrans : CblasNoTrans,
                    args.trans_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(block.rows),
                    static_cast<blasint>(args.n), static_cast<blasint>(args.k), args.alpha, block.a,
                    static_cast<blasint>(args.lda), block.b, static_cast<blasint>(args.ldb),
                    args.beta, block.d, static_cast<blasint>(args.ldd));
}

// beta · D, where there is nothing to multiply.
template <class T>
void Scale(const GemmArgs<T>& args, const Block<T>& block) {
  for (int64_t i = 0; i < block.rows; ++i) {
    T* const row = block.d + i * args.ldd;
    for (int64_t j = 0; j < args.n; ++j) row[j] = args.beta == T{0} ? T{0} : args.beta * row[j];
  }
}

template <class T, class Activation>
void Finish(const GemmArgs<T>& args, const Block<T>& block, const Activation& activation) {
  const T* const bias = args.bias;
  for (int64_t i = 0; i < block.rows; ++i) {
    T* const row = block.d + i * args.ldd;
    if (bias == nullptr) {
      for (int64_t j = 0; j < args.n; ++j) row[j] = activation(row[j]);
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < args.n; ++j) row[j] = activation(row[j] + bias[j]);
    }
  }
}

template <class T>
void Finish(const GemmArgs<T>& args, const Block<T>& block) {
  switch (args.epilogue) {
    case Epilogue::kNone:
      if (args.bias != nullptr) Finish(args, block, [](T x) { return x; });
      return;
    case Epilogue::kRelu:
      Finish(args, block, [](T x) { return x < T{0} ? T{0} : x; });
      return;
    case Epilogue::kGelu:
      Finish(args, block, [](T x) {
        return T{0.5} * x * (T{1} + Erf(x * static_cast<T>(0.70710678118654752440)));
      });
      return;
  }
}

// Rows [begin, end) of the rows of all matrices of the batch, one after another.
template <class T>
void RunRows(const GemmArgs<T>& args, int64_t begin, int64_t end) {
  const int64_t panel =
      std::max<int64_t>(64, kPanelBytes / (args.n * static_cast<int64_t>(sizeof(T))) / 16 * 16);
  const bool finish = args.bias != nullptr || args.epilogue != Epilogue::kNone;
  while (begin < end) {
    const int64_t matrix = begin / args.m;
    const int64_t row = begin % args.m;
    const int64_t rows = std::min({args.m - row, end - begin, finish ? panel : kMost});
    const Block<T> block = {
        args.a + matrix * args.stride_a + (args.trans_a ? row : row * args.lda),
        args.b + matrix * args.stride_b,
        args.d + matrix * args.stride_d + row * args.ldd,
        rows,
    };
    if (args.k == 0) {
      Scale(args, block);
    } else {
      Multiply(args, block);
    }
    if (finish) Finish(args, block);
    begin += rows;
  }
}

// Operands of 16 bits are widened to float in blocks of a thread's scratch memory.
constexpr int64_t kBlockRows = 128;
constexpr int64_t kBlockColumns = 256;
constexpr int64_t kBlockSum = 256;
constexpr int64_t kBlockFloats =
    kBlockRows * kBlockSum + kBlockSum * kBlockColumns + kBlockRows * kBlockColumns;
static_assert(kBlockFloats * sizeof(float) <= kHostWorkspaceBytesPerThread);

template <class T>
void Widen(const T* from, int64_t count, float* to) {
  int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, Float16>) {
    for (; i + 8 <= count; i += 8) {
      const auto* const eight = reinterpret_cast<const __m128i*>(from + i);
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(eight)));
    }
  }
#endif
  for (; i < count; ++i) to[i] = from[i];
}

// Packs a matrix, its rows `ld` elements apart.
template <class T>
void Widen(const T* from, int64_t rows, int64_t columns, int64_t ld, float* to) {
  for (int64_t i = 0; i < rows; ++i) Widen(from + i * ld, columns, to + i * columns);
}

// Rows [row, row + rows) and columns [column, column + columns) of one matrix of the batch, both at
// most a block's.
template <class T>
void RunBlock(const GemmArgs<T>& args, int64_t matrix, int64_t row, int64_t rows, int64_t column,
              int64_t columns, float* scratch) {
  float* const a = scratch;
  float* const b = a + kBlockRows * kBlockSum;
  float* const d = b + kBlockSum * kBlockColumns;
  T* const target = args.d + matrix * args.stride_d + row * args.ldd + column;
  GemmArgs<float> wide{.a = a, .b = b, .d = d};
  wide.m = rows;
  wide.n = wide.ldd = columns;
  wide.trans_a = args.trans_a;
  wide.trans_b = args.trans_b;
  wide.alpha = args.alpha;
  wide.beta = args.beta;
  if (args.beta != 0) Widen(target, rows, columns, args.ldd, d);
  if (args.k == 0) Scale(wide, Block<float>{a, b, d, rows});
  for (int64_t first = 0; first < args.k; first += kBlockSum) {
    wide.k = std::min(kBlockSum, args.k - first);
    const T* const from_a = args.a + matrix * args.stride_a +
                            (args.trans_a ? first * args.lda + row : row * args.lda + first);
    const T* const from_b = args.b + matrix * args.stride_b +
                            (args.trans_b ? column * args.ldb + first : first * args.ldb + column);
    wide.lda = args.trans_a ? rows : wide.k;
    wide.ldb = args.trans_b ? wide.k : columns;
    Widen(from_a, args.trans_a ? wide.k : rows, wide.lda, args.lda, a);
    Widen(from_b, args.trans_b ? columns : wide.k, wide.ldb, args.ldb, b);
    Multiply(wide, Block<float>{a, b, d, rows});
    wide.beta = 1;
  }
  if (args.bias != nullptr) {
    Widen(args.bias + column, columns, a);
    wide.bias = a;
  }
  wide.epilogue = args.epilogue;
  Finish(wide, Block<float>{a, b, d, rows});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) target[i * args.ldd + j] = T(d[i * columns + j]);
  }
}

// Rows [begin, end) of the rows of all matrices of the batch, one after another.
template <class T>
void RunRows(const GemmArgs<T>& args, int64_t begin, int64_t end, float* scratch) {
  while (begin < end) {
    const int64_t matrix = begin / args.m;
    const int64_t row = begin % args.m;
    const int64_t rows = std::min({args.m - row, end - begin, kBlockRows});
    for (int64_t column = 0; column < args.n; column += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, args.n - column);
      RunBlock(args, matrix, row, rows, column, columns, scratch);
    }
    begin += rows;
  }
}

class OpenBlas final : public GemmBlas {
 public:
  explicit OpenBlas(int threads) : threads_(threads) {
    static std::once_flag once;
    std::call_once(once, [] { scipy_openblas_set_num_threads(1); });
  }

  Rest Gemm(LaunchContext& context, const GemmArgs<float>& args) override {
    return Run(context, args);
  }
  Rest Gemm(LaunchContext& context, const GemmArgs<double>& args) override {
    return Run(context, args);
  }
  Rest Gemm(LaunchContext& context, const GemmArgs<Float16>& args) override {
    return Run(context, args);
  }
  Rest Gemm(LaunchContext& context, const GemmArgs<BFloat16>& args) override {
    return Run(context, args);
  }

 private:
  template <class T>
  Rest Run([[maybe_unused]] LaunchContext& context, const GemmArgs<T>& given) {
    ValidateGemm(given);
    if (IsEmpty(given)) return {};
    const GemmArgs<T> args = FoldBatch(given);
    // Rows are split; the rest has to fit.
    if (std::max({args.n, args.k, args.lda, args.ldb, args.ldd}) > kMost) {
      throw ArgumentError("matrix product: an extent exceeds " + std::to_string(kMost) +
                          ", the most that OpenBLAS can index");
    }
    [[maybe_unused]] std::byte* scratch = nullptr;
    if constexpr (std::is_class_v<T>) {
      if (context.workspace_bytes() <
          kHostWorkspaceBytesPerThread * static_cast<size_t>(threads_)) {
        throw ArgumentError("matrix product: the context's workspace of " +
                            std::to_string(context.workspace_bytes()) +
                            " bytes is too small for its threads");
      }
      scratch = static_cast<std::byte*>(context.workspace());
    }
    const int64_t rows = args.m * args.batch;
    const int64_t shares = rows * args.n * std::max<int64_t>(args.k, 1) < kParallelProducts
                               ? 1
                               : std::min<int64_t>(threads_, rows);
    const auto run = [&](int64_t share) {
      const int64_t begin = rows * share / shares;
      const int64_t end = rows * (share + 1) / shares;
      if constexpr (std::is_class_v<T>) {
        const size_t offset = static_cast<size_t>(share) * kHostWorkspaceBytesPerThread;
        RunRows(args, begin, end, reinterpret_cast<float*>(scratch + offset));
      } else {
        RunRows(args, begin, end);
      }
    };
    if (shares == 1) {
      run(0);
      return {};
    }
#pragma omp parallel for num_threads(static_cast<int>(shares)) schedule(static, 1)
    for (int64_t share = 0; share < shares; ++share) run(share);
    return {};
  }

  int threads_;
};

}  // namespace

void GemmInThread(const GemmArgs<float>& args) { RunRows(args, 0, args.m * args.batch); }
void GemmInThread(const GemmArgs<double>& args) { RunRows(args, 0, args.m * args.batch); }

std::unique_ptr<Blas> NewCpuBlas(int threads) { return std::make_unique<OpenBlas>(threads); }

}  // namespace sofie
