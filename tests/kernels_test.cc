// The kernels of a model do not depend on sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

// Sizes of the cases, (1, 100, 10) first; at the last one the vertices' tensors are empty.
constexpr const char* kSizes[] = {"N=1,n_pf=100,n_sv=10",  "N=1,n_pf=50,n_sv=5",
                                  "N=1,n_pf=128,n_sv=16",  "N=7,n_pf=33,n_sv=3",
                                  "N=64,n_pf=100,n_sv=10", "N=1,n_pf=17,n_sv=0"};
constexpr const char* kEmpty = kSizes[5];

class KernelsTest : public BackendTest {};

// A dense step is compiled for tiles of many rows, for tiles of few, and for Hopper's warpgroups,
// whose blocks have columns of their own or share them, and sizes choose. This is the name of its
// functor alone; another kernel's whole name.
std::string WithoutTile(const std::string& kernel) {
  for (const std::string tiles : {"DenseTiles", "DenseWarpgroups"}) {
    const size_t found = kernel.find(tiles + "I");
    if (found == std::string::npos) continue;
    const size_t begin = found + tiles.size();
    return "Dense" + kernel.substr(begin, kernel.find("DenseShape") - begin);
  }
  return kernel;
}
constexpr int kTiles = 4;

TEST_P(KernelsTest, StepsRunAtAllSizes) {
  ASSERT_GT(particle_net::Info().steps.size(), 20u);
  for (const char* sizes : kSizes) {
    const auto session = particle_net::NewSession(device(), {.profile = true});
    const ModelCase model_case = ReadCase("particle_net_test", sizes, particle_net::Info());
    session->Run(InputsOf(model_case));
    const Profile& profile = session->profile();
    ASSERT_EQ(profile.steps.size(), particle_net::Info().steps.size());
    for (const StepProfile& step : profile.steps) {
      EXPECT_EQ(step.microseconds.count(), 1) << sizes << ": " << step.name;
    }
  }
}

// What the GPU runs is read from the captured graphs: the names that the driver has for the kernels
// of this project. Compiled templates have their arguments in the names, so that code specialised
// to a size would show.
TEST_P(KernelsTest, NamesAreTheSameAtAllSizes) {
  const auto session = particle_net::NewSession(device());
  std::set<std::string> expected;
  std::map<std::string, std::set<std::string>> variants;
  for (const char* sizes : kSizes) {
    const ModelCase model_case = ReadCase("particle_net_test", sizes, particle_net::Info());
    session->Run(InputsOf(model_case));
    std::set<std::string> names;
    for (const std::string& name : session->GraphKernels()) {
      names.insert(WithoutTile(name));
      variants[WithoutTile(name)].insert(name);
    }
    if (!gpu()) {
      EXPECT_TRUE(names.empty());
      continue;
    }
    if (expected.empty()) {
      EXPECT_GT(names.size(), 10u);
      expected = names;
    }
    if (sizes == kEmpty) {  // nothing is launched for empty tensors
      EXPECT_TRUE(std::includes(expected.begin(), expected.end(), names.begin(), names.end()));
    } else {
      EXPECT_EQ(names, expected) << sizes;
    }
  }
  const std::span<const StepInfo> steps = particle_net::Info().steps;
  for (const auto& [kernel, names] : variants) {
    const auto launched = std::count_if(steps.begin(), steps.end(), [&](const StepInfo& step) {
      return kernel.find(step.kernel) != std::string::npos;
    });
    EXPECT_LE(static_cast<int64_t>(names.size()), std::max<int64_t>(1, kTiles * launched))
        << kernel;
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
