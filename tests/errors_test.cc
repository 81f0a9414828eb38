// What a generated model refuses, each by its message, and that the session runs right afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "models/particle_net.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/testing.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

constexpr char kSizes[] = "N=7,n_pf=33,n_sv=3";

class ErrorsTest : public BackendTest {
 protected:
  // Expects runs with changed inputs to be refused, and a good run after each to be right.
  template <class E>
  void ExpectRefused(const std::function<void(std::vector<TensorView>&)>& change,
                     const std::string& message) {
    std::vector<TensorView> inputs = InputsOf(case_);
    change(inputs);
    CaseTensor result = Poisoned(case_.outputs[0].tensor);
    const std::vector<MutableTensorView> outputs = {
        {result.data.data(), result.dtype, result.shape}};
    ExpectThrows<E>([&] { session_->Run(inputs); }, message);
    ExpectThrows<E>([&] { session_->Run(inputs, outputs); }, message);
    EXPECT_EQ(result.data, Poisoned(result).data) << "a refused run wrote its output";
    ExpectRuns(*session_, case_);
  }
  template <class E>
  void ExpectOutputRefused(const std::function<void(MutableTensorView&)>& change,
                           const std::string& message) {
    CaseTensor result = Poisoned(case_.outputs[0].tensor);
    std::vector<MutableTensorView> outputs = {{result.data.data(), result.dtype, result.shape}};
    change(outputs[0]);
    ExpectThrows<E>([&] { session_->Run(InputsOf(case_), outputs); }, message);
    ExpectRuns(*session_, case_);
  }

  const ModelCase case_ = ReadCase("particle_net_test", kSizes, particle_net::Info());
  const std::unique_ptr<SessionCore> session_ = particle_net::NewSession(device());
};

TEST_P(ErrorsTest, ContradictingSizes) {
  ExpectRefused<ShapeError>([](auto& inputs) { inputs[1].shape = {7, 20, 34}; },
                            "input 'pf_features', axis 2: extent 34 contradicts n_pf = 33 of input "
                            "'pf_points', axis 2; both must be equal");
  ExpectRefused<ShapeError>([](auto& inputs) { inputs[5].shape = {6, 1, 3}; },
                            "input 'sv_mask', axis 0: extent 6 contradicts N = 7 of input "
                            "'pf_points', axis 0; both must be equal");
}

TEST_P(ErrorsTest, TypedInterface) {
  particle_net::Session session(device());
  particle_net::Inputs inputs = {
      .pf_points = ViewOf<float>(case_.inputs[0]),
      .pf_features = ViewOf<float>(case_.inputs[1]),
      .pf_mask = ViewOf<float>(case_.inputs[2]),
      .sv_points = ViewOf<float>(case_.inputs[3]),
      .sv_features = ViewOf<float>(case_.inputs[4]),
      .sv_mask = ViewOf<float>(case_.inputs[5]),
  };
  inputs.sv_features.shape = {7, 11, 4};
  ExpectThrows<ShapeError>([&] { session.Run(inputs); },
                           "input 'sv_features', axis 2: extent 4 contradicts n_sv = 3 of input "
                           "'sv_points', axis 2; both must be equal");
  inputs.sv_features.shape = {7, 11, 3};
  EXPECT_EQ(Compare(session.Run(inputs).softmax, case_.outputs[0]), "");
}

TEST_P(ErrorsTest, WrongRank) {
  ExpectRefused<ShapeError>(
      [](auto& inputs) { inputs[2].shape = {7, 33}; },
      "input 'pf_mask': shape [7, 33] has rank 2, but the model has [N, 1, n_pf] of rank 3");
}

TEST_P(ErrorsTest, WrongFixedExtent) {
  ExpectRefused<ShapeError>(
      [](auto& inputs) { inputs[1].shape = {7, 21, 33}; },
      "input 'pf_features', axis 1: extent 21, but the model fixes it at 20 ([N, 20, n_pf])");
}

TEST_P(ErrorsTest, NegativeExtent) {
  ExpectRefused<ShapeError>([](auto& inputs) { inputs[0].shape = {-7, 2, 33}; },
                            "input 'pf_points', axis 0: extent -7 is negative; extents start at 0");
}

TEST_P(ErrorsTest, TooFewPointsForTheNeighbours) {
  ExpectRefused<ShapeError>(
      [](auto& inputs) {
        inputs[0].shape = {7, 2, 13};
        inputs[1].shape = {7, 20, 13};
        inputs[2].shape = {7, 1, 13};
      },
      "/pn/edge_convs.0/TopK: TopK takes K = 17 elements along an axis of 16; give inputs of at "
      "least that size");
}

TEST_P(ErrorsTest, WrongDType) {
  ExpectRefused<DTypeError>(
      [](auto& inputs) { inputs[0].dtype = DType::kFloat64; },
      "input 'pf_points': float64 given, but the model has float32; convert the data");
  ExpectOutputRefused<DTypeError>(
      [](auto& output) { output.dtype = DType::kInt32; },
      "output 'softmax': int32 given, but the model has float32; convert the data");
}

TEST_P(ErrorsTest, NullData) {
  ExpectRefused<ArgumentError>(
      [](auto& inputs) { inputs[4].data = nullptr; },
      "input 'sv_features': data is null, but shape [7, 11, 3] has 231 elements");
  ExpectOutputRefused<ArgumentError>(
      [](auto& output) { output.data = nullptr; },
      "output 'softmax': data is null, but shape [7, 8] has 56 elements");
}

TEST_P(ErrorsTest, WrongNumberOfInputs) {
  ExpectRefused<ArgumentError>([](auto& inputs) { inputs.pop_back(); },
                               "model 'particle_net' has 6 inputs, but 5 were given");
}

TEST_P(ErrorsTest, WrongOutputShape) {
  ExpectOutputRefused<ShapeError>(
      [](auto& output) { output.shape = {7, 7}; },
      "output 'softmax': the buffer has shape [7, 7], but these inputs give [7, 8]");
}

TEST_P(ErrorsTest, SizesOfReserveAndPrepare) {
  const std::vector<int64_t> negative = {1, -1, 10};
  ExpectThrows<ShapeError>([&] { session_->Reserve(negative); },
                           "size n_pf = -1 is negative; sizes start at 0");
  const std::vector<int64_t> too_few = {1, 2, 2};
  EXPECT_THROW(session_->Prepare(too_few), ShapeError);
  const std::vector<int64_t> endless = {std::numeric_limits<int64_t>::max() / 2, 100, 10};
  EXPECT_THROW(session_->Prepare(endless), Error);
  ExpectRuns(*session_, case_);
}

TEST_P(ErrorsTest, MemoryLimit) {
  const auto limited = particle_net::NewSession(
      device(), {.memory_limit = session_->memory().workspace + (size_t{16} << 20)});
  const std::vector<int64_t> large = {3, 5000, 10};  // not even one of them fits
  try {
    limited->Prepare(large);
    ADD_FAILURE() << "the limit was passed";
  } catch (const MemoryError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("for N = 1, n_pf = 5000, n_sv = 10 wants "), std::string::npos)
        << message;
    EXPECT_NE(message.find("memory_limit"), std::string::npos) << message;
  }
  EXPECT_LE(limited->memory().arena, limited->memory().limit);
  ExpectRuns(*limited, case_);
}

TEST(MissingBackendTest, NamesTheFlag) {
#if defined(SOFIE_WITH_CUDA)
  // All backends are in this build, but no machine has this device.
  try {
    particle_net::Session session(Device::Cuda(1000));
    ADD_FAILURE() << "there is a device 1000";
  } catch (const BackendError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("cuda:1000: "), 0u) << message;
    // With a GPU and without.
    EXPECT_TRUE(message.find("; use an index from 0 to ") != std::string::npos ||
                message.find(" or use Device::Cpu() or Device::OpenMp()") != std::string::npos)
        << message;
  }
#else
  ExpectThrows<BackendError>(
      [] { particle_net::Session session(Device::Cuda()); },
      "this build of model 'particle_net' has no cuda backend, only cpu,openmp; build it with "
      "--//sofie:backends=cpu,openmp,cuda (from another workspace: --@sofie//sofie:backends=…)");
#endif
}

// Weights that are read from a file.
class WeightsTest : public BackendTest {
 protected:
  static std::vector<char> ReadWeights(const std::string& model) {
    std::ifstream stream("models/" + model + "_weights.safetensors", std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_GT(bytes.size(), 256u) << model;
    return bytes;
  }
  // A file with these bytes.
  static std::string Write(const std::vector<char>& bytes) {
    const std::string path = testing::TempDir() + "/file.safetensors";
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  void ExpectRefused(const std::string& path, const std::string& message) {
    ExpectThrows<WeightsError>([&] { particle_net::NewSession(device(), {.weights_file = path}); },
                               message);
    // The failed session left nothing behind: another is right.
    ExpectRuns(*particle_net::NewSession(device()), case_);
  }

  const ModelCase case_ = ReadCase("particle_net_test", kSizes, particle_net::Info());
};

TEST_P(WeightsTest, Good) {
  const std::string path = Write(ReadWeights("particle_net"));
  ExpectRuns(*particle_net::NewSession(device(), {.weights_file = path}), case_);
}

TEST_P(WeightsTest, Absent) {
  ExpectRefused(
      "/no/such/file",
      "weights file '/no/such/file' cannot be read (No such file or directory); "
      "SessionOptions::weights_file must name the *_weights.safetensors generated with model "
      "'particle_net'");
}

TEST_P(WeightsTest, Truncated) {
  std::vector<char> file = ReadWeights("particle_net");
  const size_t payload = particle_net::Info().weights_bytes;
  ASSERT_GT(file.size(), payload);
  file.pop_back();
  std::string path = Write(file);
  ExpectRefused(path, "weights file '" + path + "' is truncated: " + std::to_string(payload - 1) +
                          " bytes of weights are present, but model 'particle_net' has " +
                          std::to_string(payload) + "; generate the weights again");
  file.resize(100);
  path = Write(file);
  ExpectRefused(path,
                "weights file '" + path +
                    "' is truncated: it ends after 100 bytes, within its header; generate the "
                    "weights again");
}

TEST_P(WeightsTest, Foreign) {
  const std::string path = Write(ReadWeights("mlp"));
  ExpectRefused(path, "weights file '" + path +
                          "' belongs to another graph than model 'particle_net'; generate model "
                          "and weights from the same ONNX file");
}

TEST_P(WeightsTest, NoWeightsAtAll) {
  const std::string path = Write(std::vector<char>(1000, 'x'));
  ExpectRefused(path, "weights file '" + path +
                          "' holds no weights of a compiled model; give the "
                          "*_weights.safetensors generated with model 'particle_net'");
}

TEST_P(WeightsTest, Corrupt) {
  std::vector<char> file = ReadWeights("particle_net");
  // One bit in the middle of the payload.
  file[file.size() - particle_net::Info().weights_bytes / 2] ^= 1;
  const std::string path = Write(file);
  ExpectRefused(path, "weights file '" + path +
                          "' is corrupt: its contents do not match its checksum; generate or copy "
                          "it again");
}

INSTANTIATE_TEST_SUITE_P(, ErrorsTest, OnEachBackend(), BackendName);
INSTANTIATE_TEST_SUITE_P(, WeightsTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
