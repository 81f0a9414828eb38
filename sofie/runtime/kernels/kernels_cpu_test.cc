// The kernels on the CPU backends, but for those whose tests take long to compile. Compiled with
// -fopenmp.

#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sofie/runtime/kernels/gemm_tests.h"
#include "sofie/runtime/kernels/math_tests.h"
#include "sofie/runtime/kernels/normalize_tests.h"
#include "sofie/runtime/kernels/pointwise_tests.h"
#include "sofie/runtime/kernels/random_tests.h"
#include "sofie/runtime/kernels/reduce_tests.h"
#include "sofie/runtime/kernels/scatter_tests.h"
#include "sofie/runtime/kernels/topk_tests.h"

namespace sofie::kernels::testing {

// Callers may run models of their own in each thread of a parallel region.
TEST(OpenMpTest, RunsInsideOfAParallelRegion) {
  constexpr int kCallers = 3;
  constexpr int64_t kPoints = 100003;
  std::vector<std::vector<int64_t>> out(kCallers, std::vector<int64_t>(kPoints, 0));
#pragma omp parallel for num_threads(kCallers) schedule(static, 1)
  for (int caller = 0; caller < kCallers; ++caller) {
    TestContext<CpuOpenMp> context;
    int64_t* const data = out[caller].data();
    Launcher<CpuOpenMp>(*context).Pointwise(std::array<int64_t, 1>{kPoints}, [&]<class I>() {
      return CountVisits<I, 1>{data, {{kPoints}}};
    });
  }
  for (const std::vector<int64_t>& visited : out) {
    for (int64_t i = 0; i < kPoints; ++i) ASSERT_EQ(visited[i], 1 + 2 * i);
  }
}

// The number of threads is the context's, and the caller's own setting stays.
TEST(OpenMpTest, TakesItsThreadsFromTheContext) {
  omp_set_num_threads(5);
  LaunchContext context(LaunchContext::Config{Backend::kOpenMp, 0, nullptr, 2}, nullptr);
  std::vector<int64_t> threads(100003, -1);
  int64_t* const data = threads.data();
  Launcher<CpuOpenMp>(context).Pointwise(std::array<int64_t, 1>{100003}, [&]<class I>() {
    return [data](int64_t i) { data[i] = omp_get_num_threads(); };
  });
  EXPECT_EQ(threads, std::vector<int64_t>(100003, 2));
  EXPECT_EQ(omp_get_max_threads(), 5);
}

}  // namespace sofie::kernels::testing
