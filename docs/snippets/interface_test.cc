// The C++ that README.md and docs/ show, between `// [name]` and `// [/name]`. pages_test.py
// holds the pages equal to it; here it is compiled and run.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "models/mlp.h"
#include "sofie/runtime/error.h"

namespace {

TEST(Readme, Session) {
  testing::internal::CaptureStdout();
  // [session]
  mlp::Session session(sofie::Device::Cpu());

  std::vector<float> features(3 * 16, 0.5f);  // three rows
  mlp::Outputs out = session.Run({.features = {features.data(), {3, 16}}});

  for (int64_t row = 0; row < out.probabilities.shape[0]; ++row) {
    std::cout << out.probabilities.data[row * 5] << "\n";
  }
  // [/session]
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_EQ(out.probabilities.shape, (sofie::Shape{3, 5}));
  float sum = 0;
  for (int i = 0; i < 5; ++i) sum += out.probabilities.data[i];
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(out.probabilities.data[0], out.probabilities.data[10]);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 3);
}

TEST(Readme, Buffers) {
  mlp::Session session(sofie::Device::Cpu());
  std::vector<float> features(3 * 16, 0.5f);
  // [buffers]
  std::vector<float> probabilities(3 * 5);
  session.Run({.features = {features.data(), {3, 16}}},
              {.probabilities = {probabilities.data(), {3, 5}}});
  // [/buffers]
  const mlp::Outputs out = session.Run({.features = {features.data(), {3, 16}}});
  for (int i = 0; i < 15; ++i) EXPECT_EQ(probabilities[i], out.probabilities.data[i]);
}

TEST(Readme, Prepare) {
  mlp::Session session(sofie::Device::Cpu());
  // [prepare]
  session.Reserve({.N = 1024});  // memory for every batch up to 1024
  session.Prepare({.N = 100});   // and the plan for 100: the first Run at 100 allocates nothing
  // [/prepare]
  EXPECT_EQ(session.core().memory().plans, 1);
  EXPECT_GT(session.core().memory().arena, 0u);
  const size_t arena = session.core().memory().arena;
  std::vector<float> features(1024 * 16);
  session.Run({.features = {features.data(), {1024, 16}}});
  EXPECT_EQ(session.core().memory().arena, arena);
}

TEST(Readme, Errors) {
  mlp::Session session(sofie::Device::Cpu());
  std::vector<float> features(3 * 16, 0.5f);
  testing::internal::CaptureStderr();
  // [errors]
  try {
    session.Run({.features = {features.data(), {3, 17}}});
  } catch (const sofie::ShapeError& error) {
    std::cerr << error.what() << "\n";  // names the input, the axis and both sizes
  }
  // [/errors]
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_NE(message.find("features"), std::string::npos) << message;
  EXPECT_NE(message.find("17"), std::string::npos) << message;
  EXPECT_NE(message.find("16"), std::string::npos) << message;
  session.Run({.features = {features.data(), {3, 16}}});
}

TEST(Readme, Profile) {
  mlp::Session session(sofie::Device::Cpu());
  std::vector<float> features(3 * 16, 0.5f);
  testing::internal::CaptureStdout();
  // [profile]
  session.core().SetProfiling(true);
  for (int i = 0; i < 100; ++i) session.Run({.features = {features.data(), {3, 16}}});
  session.core().PrintProfile(std::cout);  // each step: mean time and its standard error
  session.core().PrintMemory(std::cout);   // weights, arena, what sharing memory saved
  // [/profile]
  const std::string printed = testing::internal::GetCapturedStdout();
  for (const sofie::StepInfo& step : mlp::Info().steps) {
    EXPECT_NE(printed.find(step.kernel), std::string::npos) << printed;
  }
  ASSERT_FALSE(session.core().profile().steps.empty());
  EXPECT_EQ(session.core().profile().steps[0].microseconds.count(), 100);
}

TEST(Docs, Generic) {
  std::vector<float> features(3 * 16, 0.5f);
  std::ostringstream stream;
  // [generic]
  std::unique_ptr<sofie::SessionCore> session = mlp::NewSession(sofie::Device::Cpu());
  std::vector<sofie::TensorView> inputs = {{features.data(), sofie::DType::kFloat32, {3, 16}}};
  for (const sofie::TensorView& out : session->Run(inputs)) {
    stream << sofie::NameOf(out.dtype) << sofie::ToString(out.shape);
  }
  // [/generic]
  EXPECT_EQ(stream.str(), "float32[3, 5]");
  EXPECT_STREQ(session->info().inputs[0].name, "features");
}

}  // namespace
