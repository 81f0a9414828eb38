// What a session keeps between runs: memory and plans grow, shrink and make room as said, and
// results are right all along.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "models/mlp.h"
#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

class PlansTest : public BackendTest {
 protected:
  static std::vector<ModelCase> ReadCases(const std::vector<std::string>& sizes) {
    std::vector<ModelCase> cases;
    for (const std::string& text : sizes) {
      cases.push_back(ReadCase("particle_net_test", text, particle_net::Info()));
    }
    return cases;
  }

  // The plan used last is one that ran on the device.
  void ExpectKernels(const SessionCore& session) const {
    if (gpu()) {
      EXPECT_GT(session.memory().graph_kernels, 0);
    }
  }
};

TEST_P(PlansTest, FewPlansForManySizes) {
  const std::vector<ModelCase> cases =
      ReadCases({"N=1,n_pf=100,n_sv=10", "N=1,n_pf=50,n_sv=5", "N=1,n_pf=128,n_sv=16",
                 "N=7,n_pf=33,n_sv=3", "N=1,n_pf=17,n_sv=0", "N=0,n_pf=100,n_sv=10"});
  const auto session = particle_net::NewSession(device(), {.plan_cache_size = 2});
  std::vector<size_t> order;
  for (size_t i = 0; i < 3 * cases.size(); ++i) order.push_back(i % cases.size());
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (const size_t index : order) {
    ExpectRuns(*session, cases[index]);
    const MemoryReport report = session->memory();
    EXPECT_LE(report.plans, 2);
    EXPECT_EQ(report.graphs, gpu() ? report.plans : 0);
  }
  EXPECT_EQ(session->memory().plans, 2);
}

TEST_P(PlansTest, TheLeastRecentlyUsedMakesRoom) {
  const std::vector<ModelCase> cases =
      ReadCases({"N=1,n_pf=50,n_sv=5", "N=7,n_pf=33,n_sv=3", "N=1,n_pf=17,n_sv=0"});
  const auto session = particle_net::NewSession(device(), {.plan_cache_size = 2});
  const std::vector<int64_t> largest = {7, 50, 5};
  session->Reserve(largest);
  // With graphs, keeping a plan costs an allocation: a graph.
  const auto made = [&](const ModelCase& model_case) {
    const int64_t before = Allocations().allocations;
    ExpectRuns(*session, model_case);
    return Allocations().allocations - before;
  };
  made(cases[0]);
  made(cases[1]);
  EXPECT_EQ(made(cases[0]), 0);
  const int64_t third = made(cases[2]);  // in place of cases[1]
  EXPECT_EQ(third, gpu() ? 1 : 0);
  EXPECT_EQ(made(cases[0]), 0);
  EXPECT_EQ(made(cases[1]), third);
}

TEST_P(PlansTest, ArenaGrowsWhenItMustAndNeverShrinks) {
  const std::vector<ModelCase> cases = ReadCases(
      {"N=1,n_pf=17,n_sv=0", "N=1,n_pf=128,n_sv=16", "N=1,n_pf=50,n_sv=5", "N=7,n_pf=33,n_sv=3",
       "N=64,n_pf=100,n_sv=10", "N=0,n_pf=100,n_sv=10", "N=1,n_pf=100,n_sv=10"});
  particle_net::Session session(device());
  size_t arena = 0;
  for (const ModelCase& model_case : cases) {
    ExpectRuns(session.core(), model_case);
    const MemoryReport report = session.core().memory();
    EXPECT_GE(report.arena, arena);
    EXPECT_GE(report.arena, report.plan_packed + report.workspace);
    EXPECT_LE(report.plan_packed, report.plan_unpacked);
    arena = report.arena;
  }
  // Plans made in the smaller arena still hold.
  for (const ModelCase& model_case : cases) ExpectRuns(session.core(), model_case);
  EXPECT_EQ(session.core().memory().arena, arena);
}

TEST_P(PlansTest, ReservedSizesNeverGrowTheArena) {
  particle_net::Session session(device());
  session.Reserve({.N = 7, .n_pf = 128, .n_sv = 16});
  const size_t arena = session.core().memory().arena;
  EXPECT_GT(arena, 0u);
  EXPECT_EQ(session.core().memory().plans, 0);
  const int64_t memory = Allocations().live_bytes;
  for (const ModelCase& model_case :
       ReadCases({"N=7,n_pf=33,n_sv=3", "N=1,n_pf=128,n_sv=16", "N=1,n_pf=17,n_sv=0",
                  "N=0,n_pf=100,n_sv=10", "N=1,n_pf=50,n_sv=5"})) {
    ExpectRuns(session.core(), model_case);
    if (model_case.outputs[0].tensor.shape[0] > 0) ExpectKernels(session.core());
  }
  EXPECT_EQ(session.core().memory().arena, arena);
  EXPECT_EQ(Allocations().live_bytes, memory);
  const ModelCase beyond =
      ReadCase("particle_net_test", "N=64,n_pf=100,n_sv=10", particle_net::Info());
  ExpectRuns(session.core(), beyond);
  EXPECT_GT(session.core().memory().arena, arena);
}

TEST_P(PlansTest, PreparedSizesHaveTheirPlan) {
  particle_net::Session session(device());
  session.Prepare({.N = 1, .n_pf = 50, .n_sv = 5});
  MemoryReport report = session.core().memory();
  EXPECT_EQ(report.plans, 1);
  EXPECT_EQ(report.graphs, gpu() ? 1 : 0);
  ExpectKernels(session.core());
  session.Prepare({.N = 1, .n_pf = 50, .n_sv = 5});
  ExpectRuns(session.core(),
             ReadCase("particle_net_test", "N=1,n_pf=50,n_sv=5", particle_net::Info()));
  report = session.core().memory();
  EXPECT_EQ(report.plans, 1);
  // Growing for one set of sizes leaves what was prepared for another.
  session.Prepare({.N = 64, .n_pf = 100, .n_sv = 10});
  const int64_t allocations = Allocations().allocations;
  ExpectRuns(session.core(),
             ReadCase("particle_net_test", "N=1,n_pf=50,n_sv=5", particle_net::Info()));
  EXPECT_EQ(Allocations().allocations, allocations);
}

TEST_P(PlansTest, NoResultOfAnotherSize) {
  const ModelCase wide = ReadCase("mlp_test", "N=100", mlp::Info());
  const ModelCase narrow = ReadCase("mlp_test", "N=1", mlp::Info());
  const auto session = mlp::NewSession(device(), {.plan_cache_size = 1});
  for (int round = 0; round < 4; ++round) {
    ExpectRuns(*session, wide);
    ExpectRuns(*session, narrow);
    const std::span<const TensorView> outputs = session->Run(InputsOf(narrow));
    EXPECT_EQ(outputs[0].shape, Shape({1, 5}));
  }
}

TEST_P(PlansTest, ALargeBatchRunsInSlicesWithinTheMemoryLimit) {
  const ModelCase large =
      ReadCase("particle_net_test", "N=64,n_pf=100,n_sv=10", particle_net::Info());
  particle_net::Session small(device());
  small.Reserve({.N = 20, .n_pf = 100, .n_sv = 10});
  const size_t limit = small.core().memory().arena;
  particle_net::Session session(device(), {.memory_limit = limit});
  ExpectRuns(session.core(), large);
  const MemoryReport report = session.core().memory();
  EXPECT_LE(report.arena, limit);
  EXPECT_EQ(report.slice_rows, 16);  // four slices: 20 rows take as many
  ExpectKernels(session.core());
  // The same from and to where the kernels compute, and nothing is allocated again.
  DeviceTensors tensors(GetParam());
  std::vector<TensorView> inputs;
  for (const CaseTensor& input : large.inputs) {
    const MutableTensorView view = tensors.Upload(input);
    inputs.emplace_back(view.data, view.dtype, view.shape, view.memory);
  }
  const MutableTensorView output = tensors.Upload(Poisoned(large.outputs[0].tensor));
  const int64_t allocations = Allocations().allocations;
  session.core().Run(inputs, std::vector<MutableTensorView>{output});
  session.core().Synchronize();
  EXPECT_EQ(Allocations().allocations, allocations);
  const TensorView written(output.data, output.dtype, output.shape, output.memory);
  EXPECT_EQ(Compare(tensors.Download(written).view(), large.outputs[0]), "");
  const std::span<const TensorView> owned = session.core().Run(inputs);
  session.core().Synchronize();
  EXPECT_EQ(Compare(tensors.Download(owned[0]).view(), large.outputs[0]), "");
  EXPECT_LE(session.core().memory().arena, limit);
}

INSTANTIATE_TEST_SUITE_P(, PlansTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
