// Matrix products on OpenBLAS. OpenBLAS itself is held to one thread: the OpenMP threads of the
// backend each call it on their share.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

// Bytes of the result that are computed before bias and activation go over them: they should
// still be in the second-level cache then.
constexpr int64_t kPanelBytes = 256 * 1024;
// The most that OpenBLAS can index in one call.
constexpr int64_t kMost = std::numeric_limits<blasint>::max();
// Fewer multiplications than this are not worth waking other threads for.
constexpr int64_t kParallelProducts = 64 * 64 * 64;

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
        return T{0.5} * x * (T{1} + std::erf(x * static_cast<T>(0.70710678118654752440)));
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

class OpenBlas final : public GemmBlas {
 public:
  explicit OpenBlas(int threads) : threads_(threads) {
    static std::once_flag once;
    std::call_once(once, [] { scipy_openblas_set_num_threads(1); });
  }

  Rest Gemm(LaunchContext&, const GemmArgs<float>& args) override { return Run(args); }
  Rest Gemm(LaunchContext&, const GemmArgs<double>& args) override { return Run(args); }

 private:
  template <class T>
  Rest Run(const GemmArgs<T>& given) {
    ValidateGemm(given);
    if (IsEmpty(given)) return {};
    const GemmArgs<T> args = FoldBatch(given);
    // Rows are split; the rest has to fit.
    if (std::max({args.n, args.k, args.lda, args.ldb, args.ldd}) > kMost) {
      throw ArgumentError("matrix product: an extent exceeds " + std::to_string(kMost) +
                          ", the most that OpenBLAS can index");
    }
    const int64_t rows = args.m * args.batch;
    const int64_t shares = rows * args.n * std::max<int64_t>(args.k, 1) < kParallelProducts
                               ? 1
                               : std::min<int64_t>(threads_, rows);
    if (shares == 1) {
      RunRows(args, 0, rows);
      return {};
    }
#pragma omp parallel for num_threads(static_cast<int>(shares)) schedule(static, 1)
    for (int64_t share = 0; share < shares; ++share) {
      RunRows(args, rows * share / shares, rows * (share + 1) / shares);
    }
    return {};
  }

  int threads_;
};

}  // namespace

void GemmInThread(const GemmArgs<float>& args) { RunRows(args, 0, args.m * args.batch); }

std::unique_ptr<Blas> NewCpuBlas(int threads) { return std::make_unique<OpenBlas>(threads); }

}  // namespace sofie
