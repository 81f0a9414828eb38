#include "tests/model_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace sofie::model_testing {
namespace {

const BackendFactory& FactoryOf(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return kCpuBackend;
    case Backend::kOpenMp:
      return kOpenMpBackend;
    case Backend::kCuda:
#if defined(SOFIE_WITH_CUDA)
      return kCudaBackend;
#else
      break;
#endif
  }
  std::fprintf(stderr, "this build of the test has no %s backend\n", NameOf(backend));
  std::exit(EXIT_FAILURE);
}

size_t BytesOf(const TensorView& view) { return BytesOf(view.dtype, view.shape.elements()); }

}  // namespace

std::vector<Backend> BackendsUnderTest() {
  const char* names = std::getenv("SOFIE_TEST_BACKENDS");
  std::vector<Backend> backends;
  std::istringstream list(names == nullptr ? "" : names);
  for (std::string name; std::getline(list, name, ',');) {
    const auto all = {Backend::kCpu, Backend::kOpenMp, Backend::kCuda};
    const auto* found =
        std::find_if(all.begin(), all.end(), [&](Backend b) { return name == NameOf(b); });
    if (found == all.end()) {
      std::fprintf(stderr, "SOFIE_TEST_BACKENDS names the unknown backend '%s'\n", name.c_str());
      std::exit(EXIT_FAILURE);
    }
    backends.push_back(*found);
  }
  if (backends.empty()) {
    std::fprintf(stderr, "set SOFIE_TEST_BACKENDS to some of cpu,openmp,cuda\n");
    std::exit(EXIT_FAILURE);
  }
  return backends;
}

Device DeviceOf(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return Device::Cpu();
    case Backend::kOpenMp:
      return Device::OpenMp(3);
    case Backend::kCuda:
      return Device::Cuda();
  }
  std::abort();
}

std::string BackendName(const testing::TestParamInfo<Backend>& info) { return NameOf(info.param); }

ModelCase ReadCase(const std::string& test, const std::string& sizes, const ModelInfo& info) {
  return ReadModelCase("tests/" + test + "_cases/" + sizes + ".npz", info);
}

std::vector<TensorView> InputsOf(const ModelCase& model_case) {
  std::vector<TensorView> inputs;
  for (const CaseTensor& tensor : model_case.inputs) inputs.push_back(tensor.view());
  return inputs;
}

CaseTensor Poisoned(const CaseTensor& tensor) {
  CaseTensor poisoned = tensor;
  std::fill(poisoned.data.begin(), poisoned.data.end(), std::byte{0xff});
  return poisoned;
}

void ExpectRuns(SessionCore& session, const ModelCase& model_case) {
  SCOPED_TRACE(model_case.description);
  const std::vector<TensorView> inputs = InputsOf(model_case);
  std::vector<CaseTensor> buffers;
  for (const ExpectedOutput& expected : model_case.outputs) {
    buffers.push_back(Poisoned(expected.tensor));
  }
  std::vector<MutableTensorView> outputs;
  for (CaseTensor& buffer : buffers) {
    outputs.emplace_back(buffer.data.data(), buffer.dtype, buffer.shape);
  }
  ASSERT_NO_THROW(session.Run(inputs, outputs));
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(Compare(buffers[i].view(), model_case.outputs[i]), "") << "in the caller's buffer";
  }
  std::span<const TensorView> owned;
  ASSERT_NO_THROW(owned = session.Run(inputs));
  ASSERT_EQ(owned.size(), model_case.outputs.size());
  for (size_t i = 0; i < owned.size(); ++i) {
    EXPECT_EQ(Compare(owned[i], model_case.outputs[i]), "") << "in the session's buffer";
  }
}

DeviceTensors::DeviceTensors(Backend backend)
    : memory_(backend == Backend::kCuda ? Memory::kDevice : Memory::kHost),
      runtime_(FactoryOf(backend).create(DeviceOf(backend))) {}

MutableTensorView DeviceTensors::Upload(const CaseTensor& tensor, size_t offset) {
  ActiveDevice active(*runtime_);
  blocks_.push_back(runtime_->AllocateDevice(tensor.data.size() + offset + 1, "test tensors"));
  std::byte* data = blocks_.back()->data() + offset;
  runtime_->Copy(data, tensor.data.data(), tensor.data.size(), CopyKind::kHostToDevice);
  runtime_->Synchronize();
  return {data, tensor.dtype, tensor.shape, memory_};
}

CaseTensor DeviceTensors::Download(const TensorView& view) {
  ActiveDevice active(*runtime_);
  CaseTensor tensor{view.dtype, view.shape, std::vector<std::byte>(BytesOf(view))};
  runtime_->Copy(tensor.data.data(), view.data, tensor.data.size(), CopyKind::kDeviceToHost);
  runtime_->Synchronize();
  return tensor;
}

}  // namespace sofie::model_testing
