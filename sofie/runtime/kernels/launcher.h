// What generated code calls: steps of a model, put into the context's queue one after another.
//
// `make` arguments return the functor for an index type: [&]<class I>() { return F<I>{…}; }. The
// CPU backends use int64_t; CUDA uses int32_t unless a buffer or the iteration space is too large.
// Functors get logical indices, outermost first, and have no dependence between points. Nothing
// here allocates after the first launch of a context, waits, or reads device memory, so all of it
// can be captured into a CUDA graph. An empty iteration space launches nothing.
#ifndef SOFIE_RUNTIME_KERNELS_LAUNCHER_H_
#define SOFIE_RUNTIME_KERNELS_LAUNCHER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/backend_tags.h"
#include "sofie/runtime/kernels/combine.h"
#include "sofie/runtime/kernels/dense_shape.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/math.h"
#include "sofie/runtime/kernels/policy.h"
#include "sofie/runtime/kernels/random.h"
#include "sofie/runtime/kernels/scan.h"
#include "sofie/runtime/kernels/scatter.h"
#include "sofie/runtime/kernels/topk_key.h"
#include "sofie/runtime/kernels/tree_ensemble.h"

#if defined(__CUDACC__)
#include "sofie/runtime/kernels/attention_gpu.h"
#include "sofie/runtime/kernels/attention_mma.h"
#include "sofie/runtime/kernels/attention_wgmma.h"
#include "sofie/runtime/kernels/bias_activation.h"
#include "sofie/runtime/kernels/dense_gpu.h"
#include "sofie/runtime/kernels/pointwise_gpu.h"
#include "sofie/runtime/kernels/reduce_gpu.h"
#include "sofie/runtime/kernels/scan_gpu.h"
#include "sofie/runtime/kernels/topk_gpu.h"
#include "sofie/runtime/kernels/tree_ensemble_gpu.h"
#else
#include "sofie/runtime/kernels/attention_cpu.h"
#include "sofie/runtime/kernels/dense_cpu.h"
#include "sofie/runtime/kernels/pointwise_cpu.h"
#include "sofie/runtime/kernels/reduce_cpu.h"
#include "sofie/runtime/kernels/scan_cpu.h"
#include "sofie/runtime/kernels/topk_cpu.h"
#include "sofie/runtime/kernels/tree_ensemble_cpu.h"
#endif

namespace sofie::kernels {

using ::sofie::Epilogue;
using ::sofie::GemmArgs;

template <class B>
class Launcher {
 public:
  explicit Launcher(LaunchContext& context) : context_(context) {}

  // Step `index` of the model begins.
  void Step(int index) { context_.Step(index); }

  // The session's seed and the number of the run, uint64_t each.
  void* random_state() const { return context_.random_state(); }

  // body(i0, …, iR-1) for every point. A body that splits into `using Value`, Load(i…) and
  // Store(i…, Value) lets a GPU have several loads in flight.
  template <size_t R, class Make>
  void Pointwise(const std::array<int64_t, R>& extents, const Make& make) {
    const int64_t points = Elements(extents);
    if (points == 0) return;
    if constexpr (B::kGpu) {
      WithIndexType(points, [&]<class I>() { PointwiseWith<I>(extents, points, make); });
    } else {
      PointwiseWith<int64_t>(extents, points, make);
    }
  }

  // body.Store(kept…, acc) for every kept point, where acc combines body.Load(kept…, reduced…) over
  // all reduced points with Body::Combine: its Identity() if there are none.
  template <class Policy, size_t K, size_t R, class Make>
  void Reduce(const std::array<int64_t, K>& kept, const std::array<int64_t, R>& reduced,
              const Make& make) {
    Rows<Policy, Finish::kStore>(kept, reduced, make);
  }

  // body.Store(kept…, reduced…, acc) for every element, with the acc of its row.
  template <class Policy, size_t K, size_t R, class Make>
  void Normalize(const std::array<int64_t, K>& kept, const std::array<int64_t, R>& reduced,
                 const Make& make) {
    if (Elements(reduced) == 0) return;
    Rows<Policy, Finish::kMap>(kept, reduced, make);
  }

  // body.Store(kept…, c, acc) for every kept point and output column c, where acc combines, with
  // Body::Combine, column c of the group's Shape::kRows rows after all layers. Before them, element
  // [r, c] of the group is body.Load(kept…, r, c). Groups of one row need no Combine. Throws
  // ArgumentError if a weight is null or, on a GPU, not 16-byte aligned.
  template <class Shape, size_t K, class Make>
  void Dense(const std::array<int64_t, K>& kept,
             const std::array<DenseLayer, Shape::kLayers>& layers, const Make& make) {
    const int64_t groups = Elements(kept);
    if (groups == 0) return;
    for (const DenseLayer& layer : layers) {
      if (layer.weight == nullptr) throw ArgumentError("Dense: a weight is null");
    }
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      WithIndexType(groups * Shape::kRows, [&]<class I>() {
        const auto body = make.template operator()<I>();
        using Body = std::remove_const_t<decltype(body)>;
        DenseOnGpu<Body, I, K, Shape>::Launch(context_, body, kept, layers);
      });
#endif
    } else {
#if !defined(__CUDACC__)
      const auto body = make.template operator()<int64_t>();
      using Body = std::remove_const_t<decltype(body)>;
      DenseOnCpu<Body, K, Shape>::template Launch<B>(context_, body, kept, layers);
#endif
    }
  }

  // The mean of values, weighted by how keys answer a query, for every row of every sequence and
  // head; see attention.h. Throws ArgumentError unless the heads of keys divide those of queries.
  template <class Make>
  void Attention(const AttentionArgs& args, const Make& make) {
    if (args.heads * args.rows == 0) return;
    if (args.key_heads <= 0 || args.heads % args.key_heads != 0) {
      throw ArgumentError("Attention: " + std::to_string(args.heads) +
                          " heads can't share the keys of " + std::to_string(args.key_heads));
    }
    using Wide = std::remove_cvref_t<decltype(make.template operator()<int64_t>())>;
    if (!Wide::kPacked && args.batch == 0) return;
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      const int64_t scores = Wide::kHasBias ? args.batch * args.heads * args.rows * args.keys : 0;
      WithIndexType(std::max({scores, args.rows, args.keys}), [&]<class I>() {
        const auto body = make.template operator()<I>();
        using Body = std::remove_const_t<decltype(body)>;
        constexpr bool kFits = FitsTensorCores<Body>();
        if constexpr (kFits) {
          if (kOnlyWarpgroups || LimitsOf(context_).warpgroups) {
            AttentionWarpgroups<Body, I>::Launch(context_, body, args);
            return;
          }
        }
        if constexpr (kFits && !kOnlyWarpgroups) {
          if (kOnlyTensorCores ||
              LimitsOf(context_).shared_bytes >= AttentionMmaTiling<Body>::kSharedBytes) {
            AttentionMma<Body, I>::Launch(context_, body, args);
            return;
          }
        }
        if constexpr (!kFits || !kOnlyTensorCores) {
          AttentionOnGpu<Body, I>::Launch(context_, body, args);
        }
      });
#endif
    } else {
#if !defined(__CUDACC__)
      AttentionOnCpu<Wide>::template Launch<B>(context_, make.template operator()<int64_t>(), args);
#endif
    }
  }

  // *at = Body::Combine(*at, value) with the at and value of body.At(lines…, updates…), for every
  // point. Only points of one line may meet at one element: on a CPU they do so in the order of the
  // updates, on a GPU in any order.
  template <size_t L, size_t U, class Make>
  void Scatter(const std::array<int64_t, L>& lines, const std::array<int64_t, U>& updates,
               const Make& make) {
    const int64_t points = Elements(lines) * Elements(updates);
    if (points == 0) return;
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      WithIndexType(points, [&]<class I>() {
        const auto body = make.template operator()<I>();
        using Body = std::remove_const_t<decltype(body)>;
        ScatterOnGpu<Body, I, L, U>::Launch(context_, body, lines, updates);
      });
#endif
    } else {
#if !defined(__CUDACC__)
      const auto body = make.template operator()<int64_t>();
      using Body = std::remove_const_t<decltype(body)>;
      const ScatterOnCpu<Body, L, U> kernel{body, lines, updates};
      LaunchUnits<B>(context_, kernel.units(), points, kernel);
#endif
    }
  }

  // Selects from rows, one for every kept point, whose element j is body.Load(kept…, j): the outer
  // axes of `args` come first among the kept ones, then the inner. Throws ArgumentError unless
  // 0 ≤ k ≤ axis.
  template <class T, size_t K, class Make>
  void TopK(const std::array<int64_t, K>& kept, const TopKArgs<T>& args, const Make& make) {
    if (args.k < 0 || args.k > args.axis) {
      throw ArgumentError("TopK: k = " + std::to_string(args.k) +
                          " must lie between 0 and the axis' extent " + std::to_string(args.axis));
    }
    const int64_t rows = Elements(kept);
    if (rows == 0 || args.k == 0) return;
    if (args.values == nullptr && args.indices == nullptr) return;
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      WithIndexType(rows * args.axis, [&]<class I>() {
        const auto body = make.template operator()<I>();
        using Body = std::remove_const_t<decltype(body)>;
        TopKOnGpu<T, Body, I, K>::Launch(context_, body, kept, args);
      });
#endif
    } else {
#if !defined(__CUDACC__)
      const auto body = make.template operator()<int64_t>();
      using Body = std::remove_const_t<decltype(body)>;
      LaunchUnits<B>(context_, rows, rows * args.axis,
                     TopKOnCpu<T, Body, K>{body, IndexSpace<int64_t, K>(kept), args});
#endif
    }
  }

  // Running sums or products.
  template <class T>
  void Scan(const ScanArgs<T>& args) {
    if (args.outer * args.axis * args.inner == 0) return;
    if (args.product) {
      ScanWith<Product<T>>(args);
    } else {
      ScanWith<Sum<T>>(args);
    }
  }

  // The votes of decision trees.
  template <class X, class T>
  void TreeEnsemble(const TreeEnsembleArgs<X, T>& args) {
    if (args.rows * args.targets == 0) return;
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      TreeEnsembleOnGpu<X, T>::Launch(context_, args);
#endif
    } else {
#if !defined(__CUDACC__)
      using Kernel = TreeEnsembleOnCpu<X, T>;
      // A walk is worth tens of element operations.
      LaunchUnits<B>(context_, Kernel::Tiles(args.rows), args.rows * args.trees * 32, Kernel{args});
#endif
    }
  }

  // Throws ArgumentError if the arguments describe no valid matrices.
  template <class T>
  void Gemm(const GemmArgs<T>& args) {
    GemmBlas& blas = static_cast<GemmBlas&>(*context_.blas());
    [[maybe_unused]] const GemmBlas::Rest rest = blas.Gemm(context_, args);
#if defined(__CUDACC__)
    if (rest.any()) {
      const T* const bias = rest.bias ? args.bias : nullptr;
      Pointwise(std::array<int64_t, 3>{args.batch, args.m, args.n}, [&]<class I>() {
        return BiasActivation<T, I>{args.d,
                                    bias,
                                    static_cast<I>(args.stride_d),
                                    static_cast<I>(args.ldd),
                                    rest.scale ? args.beta : 1,
                                    rest.epilogue};
      });
    }
#endif
  }

 private:
  template <class Combine, class T>
  void ScanWith(const ScanArgs<T>& args) {
    if constexpr (B::kGpu) {
#if defined(__CUDACC__)
      ScanOnGpu<T, Combine>(context_, args);
#endif
    } else {
#if !defined(__CUDACC__)
      using Kernel = ScanOnCpu<T, Combine>;
      LaunchUnits<B>(context_, args.outer * Kernel::Tiles(args),
                     args.outer * args.axis * args.inner, Kernel{args});
#endif
    }
  }

  // Calls `run` with the narrowest index type that can count `points`.
  template <class Run>
  void WithIndexType(int64_t points, const Run& run) {
    if (context_.wide() || points > std::numeric_limits<int32_t>::max()) {
      run.template operator()<int64_t>();
    } else {
      run.template operator()<int32_t>();
    }
  }

  template <class I, size_t R, class Make>
  void PointwiseWith(const std::array<int64_t, R>& extents, int64_t points, const Make& make) {
    const auto body = make.template operator()<I>();
    using Body = std::remove_const_t<decltype(body)>;
#if defined(__CUDACC__)
    PointwiseOnGpu<Body, I, R>::Launch(context_, body, extents, points);
#else
    LaunchUnits<B>(context_, points, points, PointwiseOnCpu<Body, R>{body, extents});
#endif
  }

  template <class Policy, Finish kFinish, size_t K, size_t R, class Make>
  void Rows(const std::array<int64_t, K>& kept, const std::array<int64_t, R>& reduced,
            const Make& make) {
    const int64_t outputs = Elements(kept);
    if (outputs == 0) return;
    const int64_t points = outputs * Elements(reduced);
    if constexpr (B::kGpu) {
      WithIndexType(std::max(points, outputs), [&]<class I>() {
#if defined(__CUDACC__)
        const auto body = make.template operator()<I>();
        using Body = std::remove_const_t<decltype(body)>;
        RowsOnGpu<Body, I, K, R, Policy, kFinish>::Launch(context_, body, kept, reduced);
#endif
      });
    } else {
#if !defined(__CUDACC__)
      const auto body = make.template operator()<int64_t>();
      using Body = std::remove_const_t<decltype(body)>;
      // A row that is one thread's on a GPU is too short for vectors: they go over the outputs.
      if constexpr ((Policy::kAlong == Along::kKept || Policy::kLanes == 1) && K > 0) {
        const ColumnsOnCpu<Body, K, R, kFinish> kernel{body, kept, reduced};
        LaunchUnits<B>(context_, kernel.units(), points, kernel);
      } else {
        LaunchUnits<B>(context_, outputs, points,
                       RowsOnCpu<Body, K, R, kFinish>{body, kept, reduced});
      }
#endif
    }
  }

  LaunchContext& context_;
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_LAUNCHER_H_
