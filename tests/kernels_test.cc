// The kernels of a model do not depend on sizes.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

using Launch = std::tuple<int, std::string, std::string>;  // step, its nodes, its kernel

class KernelsTest : public BackendTest {
 protected:
  // What the profiler saw in one run of a new session.
  std::vector<Launch> LaunchesAt(const std::string& sizes) const {
    const ModelCase model_case = ReadCase("particle_net_test", sizes, particle_net::Info());
    const auto session = particle_net::NewSession(device(), {.profile = true});
    ExpectRuns(*session, model_case);
    std::vector<Launch> launches;
    for (const StepProfile& step : session->profile().steps) {
      launches.emplace_back(step.index, step.name, step.kernel);
    }
    return launches;
  }
};

TEST_P(KernelsTest, AreTheSameAtAllSizes) {
  const std::vector<Launch> expected = LaunchesAt("N=1,n_pf=100,n_sv=10");
  // Every step of the model.
  ASSERT_EQ(expected.size(), particle_net::Info().steps.size());
  ASSERT_GT(expected.size(), 20u);
  for (const char* sizes : {"N=1,n_pf=50,n_sv=5", "N=1,n_pf=128,n_sv=16", "N=7,n_pf=33,n_sv=3",
                            "N=64,n_pf=100,n_sv=10", "N=1,n_pf=17,n_sv=0"}) {
    EXPECT_EQ(LaunchesAt(sizes), expected) << sizes;
  }
}

TEST_P(KernelsTest, TakeTime) {
  const ModelCase model_case =
      ReadCase("particle_net_test", "N=7,n_pf=33,n_sv=3", particle_net::Info());
  particle_net::Session session(device());
  session.core().SetProfiling(true);
  constexpr int kRuns = 3;
  for (int run = 0; run < kRuns; ++run) session.core().Run(InputsOf(model_case));
  session.core().SetProfiling(false);
  ExpectRuns(session.core(), model_case);
  const Profile& profile = session.core().profile();
  EXPECT_EQ(profile.run_microseconds.count(), kRuns);
  EXPECT_FALSE(profile.mixed_sizes);
  double steps = 0;
  for (const StepProfile& step : profile.steps) {
    EXPECT_EQ(step.microseconds.count(), kRuns) << step.name;
    steps += step.microseconds.mean();
  }
  EXPECT_GT(steps, 0);
  EXPECT_LE(steps, 1.05 * profile.run_microseconds.mean());
  std::ostringstream table;
  session.core().PrintProfile(table);
  for (const StepInfo& step : particle_net::Info().steps) {
    EXPECT_NE(table.str().find(step.kernel), std::string::npos) << step.kernel;
  }
}

TEST_P(KernelsTest, RunOnTheDevice) {
  particle_net::Session session(device());
  session.Prepare({.N = 1, .n_pf = 100, .n_sv = 10});
  const MemoryReport report = session.core().memory();
  // A step is at least one kernel. CPU backends have no graph.
  const auto steps = static_cast<int64_t>(particle_net::Info().steps.size());
  EXPECT_GE(report.graph_kernels, gpu() ? steps : 0);
  EXPECT_GE(report.graph_nodes, report.graph_kernels);
  EXPECT_EQ(report.graphs, gpu() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(, KernelsTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
