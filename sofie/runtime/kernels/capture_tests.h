// That everything the launcher does can be captured into a CUDA graph, and what happens to a launch
// that fails. nvcc's translation unit only.
#ifndef SOFIE_RUNTIME_KERNELS_CAPTURE_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_CAPTURE_TESTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

template <class I>
struct AddOne {
  float* x;
  ALPAKA_FN_ACC void operator()(I i) const { x[i] += 1; }
};

template <class I>
struct RowSum {
  using Combine = Sum<float>;
  const float* x;
  float* out;
  I columns;
  ALPAKA_FN_ACC float Load(I o, I r) const { return x[o * columns + r]; }
  ALPAKA_FN_ACC void Store(I o, float sum) const { out[o] = sum; }
};

template <class I>
struct RowOf {
  const float* x;
  I columns;
  ALPAKA_FN_ACC float Load(I row, I j) const { return x[row * columns + j]; }
};

TEST(CaptureTest, GraphsReplayEveryKindOfStep) {
  TestContext<Cuda> context;
  const int64_t rows = 50;
  const int64_t columns = 40;
  const std::vector<float> start(rows * columns, 1.0f);
  Array<Cuda, float> x(start);
  Array<Cuda, float> weights(std::vector<float>(columns * 8, 0.5f));
  Array<Cuda, float> sums(rows);
  Array<Cuda, float> product(rows * 8);
  Array<Cuda, int64_t> indices(rows * 3);
  const auto enqueue = [&] {
    Launcher<Cuda> launcher(*context);
    launcher.Pointwise(std::array<int64_t, 1>{rows * columns},
                       [&]<class I>() { return AddOne<I>{x.data()}; });
    launcher.Reduce<ReducePolicy<Along::kReduced, 32>>(
        std::array<int64_t, 1>{rows}, std::array<int64_t, 1>{columns},
        [&]<class I>() { return RowSum<I>{x.data(), sums.data(), static_cast<I>(columns)}; });
    launcher.TopK(std::array<int64_t, 1>{rows},
                  TopKArgs<float>{.indices = indices.data(), .axis = columns, .k = 3},
                  [&]<class I>() { return RowOf<I>{x.data(), static_cast<I>(columns)}; });
    GemmArgs<float> gemm{.a = x.data(), .b = weights.data(), .d = product.data()};
    gemm.m = rows;
    gemm.n = 8;
    gemm.k = columns;
    gemm.lda = columns;
    gemm.ldb = gemm.ldd = 8;
    gemm.epilogue = Epilogue::kGelu;
    launcher.Gemm(gemm);
  };
  // What is captured need not have run before.
  CheckCuda(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeThreadLocal));
  enqueue();
  cudaGraph_t graph = nullptr;
  CheckCuda(cudaStreamEndCapture(context.stream(), &graph));
  cudaGraphExec_t executable = nullptr;
  CheckCuda(cudaGraphInstantiate(&executable, graph, 0));
  for (int run = 1; run <= 3; ++run) {
    CheckCuda(cudaGraphLaunch(executable, context.stream()));
    const float value = 1.0f + run;
    EXPECT_EQ(x.Read(context), std::vector<float>(rows * columns, value));
    EXPECT_EQ(sums.Read(context), std::vector<float>(rows, value * columns));
    // Far to the right Gelu changes nothing.
    EXPECT_EQ(product.Read(context), std::vector<float>(rows * 8, value * columns * 0.5f));
    const std::vector<int64_t>& best = indices.Read(context);
    for (int64_t i = 0; i < rows * 3; ++i) ASSERT_EQ(best[i], i % 3);
  }
  CheckCuda(cudaGraphExecDestroy(executable));
  CheckCuda(cudaGraphDestroy(graph));
}

TEST(CaptureTest, AFailedLaunchThrows) {
  TestContext<Cuda> context;
  Array<Cuda, float> x(std::vector<float>(10, 0.0f));
  cudaStream_t stream = context.stream();
  // Waiting for a stream that is being captured makes the capture invalid; launches then fail.
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_NE(cudaStreamSynchronize(stream), cudaSuccess);
  static_cast<void>(cudaGetLastError());
  Launcher<Cuda> launcher(*context);
  try {
    launcher.Pointwise(std::array<int64_t, 1>{10}, [&]<class I>() { return AddOne<I>{x.data()}; });
    ADD_FAILURE() << "the failed launch was lost";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("kernel launch failed"), std::string::npos)
        << error.what();
  }
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  // The context works again.
  static_cast<void>(cudaGetLastError());
  launcher.Pointwise(std::array<int64_t, 1>{10}, [&]<class I>() { return AddOne<I>{x.data()}; });
  EXPECT_EQ(x.Read(context), std::vector<float>(10, 1.0f));
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_CAPTURE_TESTS_H_
