#include "sofie/runtime/profiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <sstream>
#include <vector>

#include "sofie/runtime/test_model.h"

namespace sofie {
namespace {

// Gives times that the test chose, for the steps that came.
class FakeTimer final : public StepTimer {
 public:
  explicit FakeTimer(double* scale) : scale_(scale) {}
  void Begin(LaunchContext&) override { came_.clear(); }
  void OnStep(int index) override { came_.push_back(index); }
  void End() override {}
  double Collect(std::span<double> step_microseconds) override {
    for (double& time : step_microseconds) time = -1;
    double total = 0;
    for (int index : came_) {
      step_microseconds[index] = *scale_ * (index + 1);
      total += step_microseconds[index];
    }
    return total;
  }

 private:
  double* scale_;
  std::vector<int> came_;
};

class ProfilerTest : public testing::Test {
 protected:
  void Run(double scale, std::vector<int> steps, std::vector<int64_t> symbols = {1, 2}) {
    scale_ = scale;
    LaunchContext context({}, nullptr);
    profiler_.timer().Begin(context);
    for (int step : steps) profiler_.timer().OnStep(step);
    profiler_.timer().End();
    profiler_.Collect(symbols);
  }

  double scale_ = 1;
  Profiler profiler_{test_model::Info(), std::make_unique<FakeTimer>(&scale_)};
};

TEST_F(ProfilerTest, EmptyBeforeARun) {
  EXPECT_TRUE(profiler_.profile().steps.empty());
  EXPECT_TRUE(profiler_.profile().kernels.empty());
}

TEST_F(ProfilerTest, MeanAndStandardError) {
  for (double scale : {1.0, 2.0, 6.0}) Run(scale, {0, 1, 2, 3, 4});
  const Profile& profile = profiler_.profile();
  ASSERT_EQ(profile.steps.size(), 5u);
  EXPECT_EQ(profile.steps[1].microseconds.count(), 3);
  EXPECT_DOUBLE_EQ(profile.steps[1].microseconds.mean(), 6);  // of 2, 4, 12
  // Variance of 2, 4, 12 is (16 + 4 + 36) / 2 = 28.
  EXPECT_DOUBLE_EQ(profile.steps[1].microseconds.standard_error(), std::sqrt(28.0 / 3));
  EXPECT_DOUBLE_EQ(profile.run_microseconds.mean(), 45);  // of 15, 30, 90
  EXPECT_FALSE(profile.mixed_sizes);
}

TEST_F(ProfilerTest, KernelsAddUpTheirSteps) {
  Run(1, {0, 1, 2, 3, 4});
  const Profile& profile = profiler_.profile();
  ASSERT_EQ(profile.kernels.size(), 4u);
  EXPECT_EQ(profile.kernels[1].kernel, "Copy_1");
  EXPECT_EQ(profile.kernels[1].steps, 2);
  EXPECT_DOUBLE_EQ(profile.kernels[1].microseconds.mean(), 5);  // steps 1 and 2: 2 + 3
}

TEST_F(ProfilerTest, StepsThatDidNotComeAreAbsent) {
  Run(1, {0, 4});
  const Profile& profile = profiler_.profile();
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(profile.steps[1].index, 4);
  EXPECT_STREQ(profile.steps[1].name, "/tags/Expand");
  EXPECT_STREQ(profile.steps[1].kernel, "Expand_3");
  EXPECT_EQ(profile.kernels.size(), 2u);
}

TEST_F(ProfilerTest, SaysWhenSizesWereMixed) {
  Run(1, {0}, {1, 2});
  Run(1, {0}, {1, 3});
  EXPECT_TRUE(profiler_.profile().mixed_sizes);
  std::ostringstream text;
  PrintProfile(profiler_.profile(), text);
  EXPECT_NE(text.str().find("2 runs of different sizes"), std::string::npos) << text.str();
}

TEST_F(ProfilerTest, PrintsStepsAndKernels) {
  Run(10, {0, 1, 2, 3, 4});
  std::ostringstream text;
  PrintProfile(profiler_.profile(), text);
  EXPECT_NE(text.str().find("20.00       0.00    13.3 % 1 /second/Identity (Copy_1)"),
            std::string::npos)
      << text.str();
  EXPECT_NE(text.str().find("50.00       0.00    33.3 % Copy_1 (2)"), std::string::npos)
      << text.str();
}

TEST_F(ProfilerTest, WritesAChromeTrace) {
  Run(1, {0, 1});
  std::ostringstream text;
  WriteChromeTrace(profiler_.profile(), text);
  EXPECT_EQ(text.str(),
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
            "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 0.000, \"dur\": 1.000, \"name\": "
            "\"/first/Identity\", \"cat\": \"Copy_0\"},\n"
            "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1.000, \"dur\": 2.000, \"name\": "
            "\"/second/Identity\", \"cat\": \"Copy_1\"}\n"
            "]}\n");
}

}  // namespace
}  // namespace sofie
