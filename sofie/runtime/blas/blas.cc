#include "sofie/runtime/blas/blas.h"

#include <string>

#include "sofie/runtime/error.h"

namespace sofie {
namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw ArgumentError("matrix product: " + what);
}

void CheckNotNegative(const char* name, int64_t value) {
  if (value < 0) Refuse(std::string(name) + " = " + std::to_string(value) + " is negative");
}

void CheckLeading(const char* name, int64_t leading, int64_t columns) {
  if (leading < columns) {
    Refuse(std::string(name) + " = " + std::to_string(leading) + " is less than the row's length " +
           std::to_string(columns));
  }
}

}  // namespace

template <class T>
void ValidateGemm(const GemmArgs<T>& args) {
  CheckNotNegative("m", args.m);
  CheckNotNegative("n", args.n);
  CheckNotNegative("k", args.k);
  CheckNotNegative("batch", args.batch);
  if (IsEmpty(args)) return;
  CheckLeading("ldd", args.ldd, args.n);
  if (args.d == nullptr) Refuse("d is null");
  // The results lie one after the other, or side by side in the same rows.
  const bool apart = args.stride_d >= (args.m - 1) * args.ldd + args.n;
  const bool beside =
      args.stride_d >= args.n && args.ldd >= (args.batch - 1) * args.stride_d + args.n;
  if (args.batch > 1 && !apart && !beside) {
    Refuse("stride_d = " + std::to_string(args.stride_d) + " makes the results overlap");
  }
  if (args.k == 0) return;
  CheckLeading("lda", args.lda, args.trans_a ? args.m : args.k);
  CheckLeading("ldb", args.ldb, args.trans_b ? args.k : args.n);
  CheckNotNegative("stride_a", args.stride_a);
  CheckNotNegative("stride_b", args.stride_b);
  if (args.a == nullptr) Refuse("a is null");
  if (args.b == nullptr) Refuse("b is null");
}

template <class T>
GemmArgs<T> FoldBatch(const GemmArgs<T>& args) {
  GemmArgs<T> folded = args;
  if (args.batch > 1 && !args.trans_a && args.stride_b == 0 && args.stride_a == args.m * args.lda &&
      args.stride_d == args.m * args.ldd) {
    folded.m = args.m * args.batch;
    folded.batch = 1;
  }
  return folded;
}

template void ValidateGemm(const GemmArgs<float>& args);
template void ValidateGemm(const GemmArgs<double>& args);
template void ValidateGemm(const GemmArgs<Float16>& args);
template void ValidateGemm(const GemmArgs<BFloat16>& args);
template GemmArgs<float> FoldBatch(const GemmArgs<float>& args);
template GemmArgs<double> FoldBatch(const GemmArgs<double>& args);
template GemmArgs<Float16> FoldBatch(const GemmArgs<Float16>& args);
template GemmArgs<BFloat16> FoldBatch(const GemmArgs<BFloat16>& args);

}  // namespace sofie
