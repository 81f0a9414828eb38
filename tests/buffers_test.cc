// Which memory a run reads and writes: all of its outputs and nothing else, on host and device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "models/cnn.h"
#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

constexpr std::byte kGuard{0xa5};
constexpr size_t kGuardBytes = 1024;

class BuffersTest : public BackendTest {
 protected:
  static std::vector<ModelCase> ReadCases() {
    std::vector<ModelCase> cases;
    for (const char* sizes : {"N=7,n_pf=33,n_sv=3", "N=1,n_pf=17,n_sv=0", "N=64,n_pf=100,n_sv=10",
                              "N=0,n_pf=100,n_sv=10", "N=1,n_pf=50,n_sv=5"}) {
      cases.push_back(ReadCase("particle_net_test", sizes, particle_net::Info()));
    }
    return cases;
  }

  // The inputs in the backend's memory.
  static std::vector<TensorView> UploadInputs(const ModelCase& model_case, DeviceTensors& tensors,
                                              size_t offset = 0) {
    std::vector<TensorView> views;
    for (const CaseTensor& input : model_case.inputs) {
      const MutableTensorView view = tensors.Upload(input, offset);
      views.emplace_back(view.data, view.dtype, view.shape, view.memory);
    }
    return views;
  }
  static TensorView Const(const MutableTensorView& view) {
    return {view.data, view.dtype, view.shape, view.memory};
  }
};

TEST_P(BuffersTest, DeviceToDevice) {
  particle_net::Session session(device());
  for (const ModelCase& model_case : ReadCases()) {
    SCOPED_TRACE(model_case.description);
    DeviceTensors tensors(GetParam());
    const std::vector<TensorView> inputs = UploadInputs(model_case, tensors);
    const std::vector<MutableTensorView> outputs = {
        tensors.Upload(Poisoned(model_case.outputs[0].tensor))};
    for (int round = 0; round < 3; ++round) {
      session.core().Run(inputs, outputs);
      session.core().Synchronize();
      EXPECT_EQ(Compare(tensors.Download(Const(outputs[0])).view(), model_case.outputs[0]), "");
    }
    EXPECT_EQ(session.core().memory().copied, 0u);
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(tensors.Download(inputs[i]).data, model_case.inputs[i].data) << "input " << i;
    }

    const std::span<const TensorView> owned = session.core().Run(inputs);
    session.core().Synchronize();
    EXPECT_EQ(session.core().memory().copied, 0u);
    EXPECT_EQ(owned[0].memory, gpu() ? Memory::kDevice : Memory::kHost);
    EXPECT_EQ(Compare(tensors.Download(owned[0]).view(), model_case.outputs[0]), "");
  }
}

// Inputs and outputs, each in host or in device memory; a run with any host memory has ended when
// it returns.
TEST_P(BuffersTest, HostAndDeviceMixed) {
  particle_net::Session session(device());
  for (const ModelCase& model_case : ReadCases()) {
    SCOPED_TRACE(model_case.description);
    DeviceTensors tensors(GetParam());
    const std::vector<TensorView> on_host = InputsOf(model_case);
    const std::vector<TensorView> on_device = UploadInputs(model_case, tensors);

    CaseTensor result = Poisoned(model_case.outputs[0].tensor);
    const std::vector<MutableTensorView> to_host = {
        {result.data.data(), result.dtype, result.shape}};
    session.core().Run(on_device, to_host);
    EXPECT_EQ(Compare(result.view(), model_case.outputs[0]), "") << "device to host";

    const std::vector<MutableTensorView> to_device = {tensors.Upload(Poisoned(result))};
    session.core().Run(on_host, to_device);
    EXPECT_EQ(Compare(tensors.Download(Const(to_device[0])).view(), model_case.outputs[0]), "")
        << "host to device";

    std::vector<TensorView> mixed = on_host;
    for (size_t i = 0; i < mixed.size(); i += 2) mixed[i] = on_device[i];
    const std::span<const TensorView> owned = session.core().Run(mixed);
    EXPECT_EQ(owned[0].memory, Memory::kHost);
    EXPECT_EQ(Compare(owned[0], model_case.outputs[0]), "") << "mixed inputs";
  }
}

TEST_P(BuffersTest, NothingBesideTheOutputIsWritten) {
  particle_net::Session session(device());
  for (const ModelCase& model_case : ReadCases()) {
    SCOPED_TRACE(model_case.description);
    const CaseTensor poisoned = Poisoned(model_case.outputs[0].tensor);
    std::vector<std::byte> block(poisoned.data.size() + 2 * kGuardBytes, kGuard);
    std::copy(poisoned.data.begin(), poisoned.data.end(), block.begin() + kGuardBytes);
    const auto size = static_cast<int64_t>(block.size());

    DeviceTensors tensors(GetParam());
    const MutableTensorView outer = tensors.Upload({DType::kUInt8, {size}, block});
    const std::vector<MutableTensorView> outputs = {
        {static_cast<std::byte*>(outer.data) + kGuardBytes, poisoned.dtype, poisoned.shape,
         outer.memory}};
    session.core().Run(UploadInputs(model_case, tensors), outputs);
    session.core().Synchronize();
    CaseTensor after = tensors.Download(Const(outer));
    const auto guards = [](const std::vector<std::byte>& bytes) {
      const std::span<const std::byte> all(bytes);
      return std::count(all.begin(), all.begin() + kGuardBytes, kGuard) +
             std::count(all.end() - kGuardBytes, all.end(), kGuard);
    };
    EXPECT_EQ(guards(after.data), 2 * static_cast<ptrdiff_t>(kGuardBytes));
    const TensorView result(after.data.data() + kGuardBytes, poisoned.dtype, poisoned.shape);
    EXPECT_EQ(Compare(result, model_case.outputs[0]), "");
  }
}

// A caller's tensors may begin at any element of a larger array.
TEST_P(BuffersTest, AnyAlignment) {
  particle_net::Session session(device());
  for (const ModelCase& model_case : ReadCases()) {
    SCOPED_TRACE(model_case.description);
    DeviceTensors tensors(GetParam());
    const std::vector<MutableTensorView> outputs = {
        tensors.Upload(Poisoned(model_case.outputs[0].tensor), sizeof(float))};
    session.core().Run(UploadInputs(model_case, tensors, 3 * sizeof(float)), outputs);
    session.core().Synchronize();
    EXPECT_EQ(Compare(tensors.Download(Const(outputs[0])).view(), model_case.outputs[0]), "");
  }
}

// NaNs in one image change no other's result.
TEST_P(BuffersTest, RowsDoNotMix) {
  const ModelCase model_case = ReadCase("cnn_test", "N=3", cnn::Info());
  std::vector<CaseTensor> inputs = model_case.inputs;
  const auto row_bytes = static_cast<ptrdiff_t>(inputs[0].data.size() / 3);
  std::fill_n(inputs[0].data.begin() + row_bytes, row_bytes, std::byte{0xff});
  cnn::Session session(device());
  const View<const float> result = session.Run({.image = ViewOf<float>(inputs[0])}).probabilities;
  const auto* expected = reinterpret_cast<const float*>(model_case.outputs[0].tensor.data.data());
  for (const int row : {0, 2}) {
    for (int i = 3 * row; i < 3 * row + 3; ++i) {
      EXPECT_NEAR(result.data[i], expected[i], 2e-5) << "image " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, BuffersTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
