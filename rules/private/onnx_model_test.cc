// Runs a model, whose header and namespace the build names, on the cases whose files are the
// arguments; see onnx_model_test.bzl.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rules/private/model_case.h"
#include "sofie/runtime/session.h"
#include SOFIE_MODEL_HEADER

namespace sofie {
namespace {

namespace model = ::SOFIE_MODEL_NAMESPACE;

// A byte that no result is made of: as float32 a NaN, as an integer -1.
constexpr int kPoison = 0xff;

Device DeviceOf(const std::string& backend) {
  if (backend == NameOf(Backend::kCpu)) return Device::Cpu();
  if (backend == NameOf(Backend::kOpenMp)) return Device::OpenMp();
  if (backend == NameOf(Backend::kCuda)) return Device::Cuda();
  throw std::runtime_error("SOFIE_TEST_BACKENDS names the unknown backend '" + backend + "'.");
}

class ModelTest : public testing::Test {
 public:
  ModelTest(std::string backend, std::vector<std::string> paths)
      : backend_(std::move(backend)), paths_(std::move(paths)) {}

 private:
  void TestBody() override {
    std::vector<ModelCase> cases;
    for (const std::string& path : paths_) cases.push_back(ReadModelCase(path, model::Info()));
    const std::unique_ptr<SessionCore> session = model::NewSession(DeviceOf(backend_), {});

    // Two rounds, so that sizes come again after others.
    std::vector<size_t> order;
    for (size_t i = 0; i < 2 * cases.size(); ++i) order.push_back(i % cases.size());
    std::shuffle(order.begin(), order.end(), std::mt19937(20260101));
    for (const size_t index : order) {
      SCOPED_TRACE(backend_ + ", " + paths_[index] + ", " + cases[index].description);
      RunIntoOwnBuffers(*session, cases[index]);
      RunIntoSessionsBuffers(*session, cases[index]);
      if (HasFatalFailure()) return;
    }
    if (backend_ == NameOf(Backend::kCuda)) ExpectKernels(*session, cases);
  }

  static std::vector<TensorView> Inputs(const ModelCase& model_case) {
    std::vector<TensorView> inputs;
    for (const CaseTensor& tensor : model_case.inputs) inputs.push_back(tensor.view());
    return inputs;
  }

  static void RunIntoOwnBuffers(SessionCore& session, const ModelCase& model_case) {
    std::vector<CaseTensor> buffers;
    std::vector<MutableTensorView> outputs;
    for (const ExpectedOutput& expected : model_case.outputs) {
      buffers.push_back(expected.tensor);
      std::vector<std::byte>& data = buffers.back().data;
      std::fill(data.begin(), data.end(), std::byte{kPoison});
    }
    for (CaseTensor& buffer : buffers) {
      outputs.emplace_back(buffer.data.data(), buffer.dtype, buffer.shape);
    }
    ASSERT_NO_THROW(session.Run(Inputs(model_case), outputs));
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(Compare(buffers[i].view(), model_case.outputs[i]), "")
          << "output '" << session.info().outputs[i].name << "' in the caller's buffer";
    }
  }

  static void RunIntoSessionsBuffers(SessionCore& session, const ModelCase& model_case) {
    std::span<const TensorView> outputs;
    ASSERT_NO_THROW(outputs = session.Run(Inputs(model_case)));
    ASSERT_EQ(outputs.size(), model_case.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_EQ(outputs[i].memory, Memory::kHost);
      EXPECT_EQ(Compare(outputs[i], model_case.outputs[i]), "")
          << "output '" << session.info().outputs[i].name << "' in the session's buffer";
    }
  }

  // The work was done by the device, at every size that has any.
  static void ExpectKernels(SessionCore& session, const std::vector<ModelCase>& cases) {
    for (const ModelCase& model_case : cases) {
      SCOPED_TRACE(model_case.description);
      const bool any = std::any_of(
          model_case.outputs.begin(), model_case.outputs.end(),
          [](const ExpectedOutput& expected) { return expected.tensor.shape.elements() > 0; });
      session.Run(Inputs(model_case));
      if (any) {
        EXPECT_GT(session.memory().graph_kernels, 0);
      }
    }
  }

  std::string backend_;
  std::vector<std::string> paths_;
};

int RegisterTests(const std::vector<std::string>& paths) {
  const char* backends = std::getenv("SOFIE_TEST_BACKENDS");
  if (backends == nullptr || paths.empty()) {
    std::cerr << "usage: SOFIE_TEST_BACKENDS=cpu,openmp,cuda onnx_model_test CASE.npz…\n";
    return 2;
  }
  std::istringstream list(backends);
  for (std::string backend; std::getline(list, backend, ',');) {
    testing::RegisterTest("OnnxModelTest", ("MatchesReferenceOn_" + backend).c_str(), nullptr,
                          nullptr, __FILE__, __LINE__,
                          [=] { return new ModelTest(backend, paths); });
  }
  return 0;
}

}  // namespace
}  // namespace sofie

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const int status = sofie::RegisterTests({argv + 1, argv + argc}); status != 0) return status;
  return RUN_ALL_TESTS();
}
