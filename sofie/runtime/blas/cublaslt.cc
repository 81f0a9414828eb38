// Matrix products on cuBLASLt. It is column-major, so it computes Dᵀ = op(B)ᵀ · op(A)ᵀ: its first
// operand is our B, its rows are our columns, and its bias runs along our n.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/dtype.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

// Shapes kept at most. A session that sees more sizes than this asks cuBLASLt again.
constexpr size_t kMostPlans = 1024;
// Up to here sums are not split among blocks, and no workspace is offered, which would invite it.
// Measured on an H200: the further launches of such algorithms cost small products more than they
// save, and cuBLASLt often ranks them first regardless (100 x 100 x 64: 11.7 us against 3.1 us).
constexpr int64_t kUnsplitSum = 1024;
// More alignment than this is of no use to a kernel.
constexpr uint32_t kMostAlignment = 16;

void Check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(std::string(call) + " failed: " + cublasLtGetStatusString(status));
  }
}

template <class T, cublasStatus_t (*kDestroy)(T)>
struct Destroyer {
  using pointer = T;
  void operator()(T handle) const { static_cast<void>(kDestroy(handle)); }
};
template <class T, cublasStatus_t (*kDestroy)(T)>
using Owned = std::unique_ptr<T, Destroyer<T, kDestroy>>;

using OwnedDescription = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using OwnedLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using OwnedPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using OwnedHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;

template <class T>
struct Types;
template <>
struct Types<float> {
  static constexpr cudaDataType_t kData = CUDA_R_32F;
  static constexpr cudaDataType_t kScalar = CUDA_R_32F;
  static cublasComputeType_t Compute(Precision precision) {
    switch (precision) {
      case Precision::kFloat32:
        return CUBLAS_COMPUTE_32F;
      case Precision::kTf32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
      case Precision::kBfloat16:
        return CUBLAS_COMPUTE_32F_FAST_16BF;
      case Precision::kFloat16:
        return CUBLAS_COMPUTE_32F_FAST_16F;
    }
    return CUBLAS_COMPUTE_32F;
  }
};
template <>
struct Types<double> {
  static constexpr cudaDataType_t kData = CUDA_R_64F;
  static constexpr cudaDataType_t kScalar = CUDA_R_64F;
  static cublasComputeType_t Compute(Precision) { return CUBLAS_COMPUTE_64F; }
};
template <>
struct Types<Float16> {
  static constexpr cudaDataType_t kData = CUDA_R_16F;
  static constexpr cudaDataType_t kScalar = CUDA_R_32F;
  static cublasComputeType_t Compute(Precision) { return CUBLAS_COMPUTE_32F; }
};
template <>
struct Types<BFloat16> {
  static constexpr cudaDataType_t kData = CUDA_R_16BF;
  static constexpr cudaDataType_t kScalar = CUDA_R_32F;
  static cublasComputeType_t Compute(Precision) { return CUBLAS_COMPUTE_32F; }
};

// All that the choice of an algorithm depends on, and nothing else.
struct Key {
  DType dtype;
  Precision precision;
  bool trans_a;
  bool trans_b;
  bool accumulates;  // beta != 0
  bool has_bias;
  bool has_relu;
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldd;
  int64_t stride_a, stride_b, stride_d;
  uint32_t align_a, align_b, align_d, align_bias;
  size_t workspace_bytes;

  auto operator<=>(const Key&) const = default;
};

struct Plan {
  OwnedDescription description;
  OwnedLayout a;  // of our A
  OwnedLayout b;
  OwnedLayout d;
  cublasLtMatmulAlgo_t algorithm;
  GemmBlas::Rest rest;
};

uint32_t AlignmentOf(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address == 0) return kMostAlignment;
  return std::min<uint32_t>(kMostAlignment, 1u << std::min(std::countr_zero(address), 16));
}

template <class Attribute, class Value>
void Set(cublasLtMatmulDesc_t description, Attribute attribute, Value value) {
  Check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

// A matrix as cuBLASLt sees it: `rows` contiguous elements in each of `columns` columns.
OwnedLayout NewLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading,
                      int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t raw = nullptr;
  Check(cublasLtMatrixLayoutCreate(&raw, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), leading),
        "cublasLtMatrixLayoutCreate");
  OwnedLayout layout(raw);
  const int32_t count = static_cast<int32_t>(batch);
  Check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute");
  Check(cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof(stride)),
        "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

template <class Value>
void Prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
            Value value) {
  Check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

cublasLtEpilogue_t EpilogueOf(bool bias, bool relu) {
  if (relu) return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

class CublasLt final : public GemmBlas {
 public:
  explicit CublasLt(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {
    cublasLtHandle_t handle = nullptr;
    Check(cublasLtCreate(&handle), "cublasLtCreate");
    handle_.reset(handle);
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
  Rest Run(LaunchContext& context, const GemmArgs<T>& given) {
    ValidateGemm(given);
    if (IsEmpty(given)) return {};
    const bool has_bias = given.bias != nullptr;
    if (given.k == 0) return {.scale = true, .bias = has_bias, .epilogue = given.epilogue};
    const GemmArgs<T> args = FoldBatch(given);
    if (args.batch > INT32_MAX) {
      throw ArgumentError("matrix product: batch = " + std::to_string(args.batch) +
                          " exceeds what cuBLASLt can count");
    }
    // What cuBLASLt is to do itself. Gelu comes after the bias; one pass does both.
    const bool fuses = !std::is_same_v<T, double> && args.epilogue != Epilogue::kGelu;
    const Key key = {
        .dtype = kDTypeOf<T>,
        .precision = args.precision,
        .trans_a = args.trans_a,
        .trans_b = args.trans_b,
        .accumulates = args.beta != 0,
        .has_bias = fuses && has_bias,
        .has_relu = fuses && args.epilogue == Epilogue::kRelu,
        .m = args.m,
        .n = args.n,
        .k = args.k,
        .batch = args.batch,
        .lda = args.lda,
        .ldb = args.ldb,
        .ldd = args.ldd,
        .stride_a = args.stride_a,
        .stride_b = args.stride_b,
        .stride_d = args.stride_d,
        .align_a = AlignmentOf(args.a),
        .align_b = AlignmentOf(args.b),
        .align_d = AlignmentOf(args.d),
        .align_bias = fuses ? AlignmentOf(args.bias) : kMostAlignment,
        .workspace_bytes = context.workspace_bytes(),
    };
    Plan& plan = PlanFor<T>(key);
    Rest rest = plan.rest;
    if (!fuses) rest = {.bias = has_bias, .epilogue = args.epilogue};
    if (LaunchObserver* const observer = context.observer()) {
      for (const void* operand : {args.a, args.b, args.bias}) observer->OnLibraryOperand(operand);
      observer->OnLibraryOperand(args.d);
      if (!observer->launches()) return rest;
    }
    if (key.has_bias && !plan.rest.bias) {
      Set<cublasLtMatmulDescAttributes_t, const void*>(
          plan.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias);
    }
    Check(
        cublasLtMatmul(handle_.get(), plan.description.get(), &args.alpha, args.b, plan.b.get(),
                       args.a, plan.a.get(), &args.beta, args.d, plan.d.get(), args.d, plan.d.get(),
                       &plan.algorithm, context.workspace(), context.workspace_bytes(), stream_),
        "cublasLtMatmul");
    return rest;
  }

  template <class T>
  Plan& PlanFor(const Key& key) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    if (plans_.size() >= kMostPlans) plans_.clear();
    Plan plan;
    if (!Choose<T>(key, key.has_bias, key.has_relu, &plan)) {
      // Without the epilogue, which is then left to the caller.
      if (!(key.has_bias || key.has_relu) || !Choose<T>(key, false, false, &plan)) {
        throw DeviceError(
            "cuBLASLt has no algorithm for a matrix product of m = " + std::to_string(key.m) +
            ", n = " + std::to_string(key.n) + ", k = " + std::to_string(key.k) +
            ", batch = " + std::to_string(key.batch));
      }
      plan.rest.bias = key.has_bias;
      plan.rest.epilogue = key.has_relu ? Epilogue::kRelu : Epilogue::kNone;
    }
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  // False if cuBLASLt has no algorithm. Where it has none of a precision, float arithmetic serves.
  template <class T>
  bool Choose(const Key& key, bool bias, bool relu, Plan* plan) {
    return ChooseWith<T>(Types<T>::Compute(key.precision), key, bias, relu, plan) ||
           (key.precision != Precision::kFloat32 &&
            ChooseWith<T>(Types<T>::Compute(Precision::kFloat32), key, bias, relu, plan));
  }

  template <class T>
  bool ChooseWith(cublasComputeType_t compute, const Key& key, bool bias, bool relu, Plan* plan) {
    cublasLtMatmulDesc_t description = nullptr;
    Check(cublasLtMatmulDescCreate(&description, compute, Types<T>::kScalar),
          "cublasLtMatmulDescCreate");
    plan->description.reset(description);
    Set(description, CUBLASLT_MATMUL_DESC_TRANSA, key.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    Set(description, CUBLASLT_MATMUL_DESC_TRANSB, key.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(bias, relu));

    constexpr cudaDataType_t kType = Types<T>::kData;
    plan->a = NewLayout(kType, key.trans_a ? key.m : key.k, key.trans_a ? key.k : key.m, key.lda,
                        key.batch, key.stride_a);
    plan->b = NewLayout(kType, key.trans_b ? key.k : key.n, key.trans_b ? key.n : key.k, key.ldb,
                        key.batch, key.stride_b);
    plan->d = NewLayout(kType, key.n, key.m, key.ldd, key.batch, key.stride_d);

    const bool may_split = key.k > kUnsplitSum;
    return (!may_split && Ask(key, CUBLASLT_REDUCTION_SCHEME_NONE, 0, plan)) ||
           Ask(key, CUBLASLT_REDUCTION_SCHEME_MASK, key.workspace_bytes, plan);
  }

  // Asks for the algorithm of a plan that has everything else. False if there is none.
  bool Ask(const Key& key, uint32_t reduction_schemes, uint64_t workspace_bytes, Plan* plan) {
    cublasLtMatmulPreference_t raw = nullptr;
    Check(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
    const OwnedPreference preference(raw);
    Prefer(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    Prefer(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction_schemes);
    Prefer(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b);
    Prefer(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a);
    Prefer(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_d);
    Prefer(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_d);

    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_.get(), plan->description.get(), plan->b.get(), plan->a.get(), plan->d.get(),
        plan->d.get(), raw, 1, &result, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
      return false;
    }
    Check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (result.state != CUBLAS_STATUS_SUCCESS) return false;
    plan->algorithm = result.algo;
    return true;
  }

  OwnedHandle handle_;
  cudaStream_t stream_;
  std::map<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<Blas> NewCudaBlas(int, void* stream) { return std::make_unique<CublasLt>(stream); }

}  // namespace sofie
