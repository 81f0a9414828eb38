#include "sofie/runtime/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/test_model.h"
#include "sofie/runtime/testing.h"

namespace sofie {
namespace {

using test_model::Blob;

class WeightsTest : public testing::Test {
 protected:
  std::shared_ptr<const Weights> Embedded(const std::vector<std::byte>& blob) {
    return LoadWeights(test_model::Info(), blob, "", Device::Cpu(), *runtime_);
  }
  std::shared_ptr<const Weights> File(const std::string& path) {
    return LoadWeights(test_model::Info(), {}, path, Device::Cpu(), *runtime_);
  }
  std::string Write(const std::string& name, const std::vector<std::byte>& blob) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(blob.data()),
               static_cast<std::streamsize>(blob.size()));
    return path;
  }
  static float First(const Weights& weights) {
    float value;
    std::memcpy(&value, weights.data(), sizeof(value));
    return value;
  }

  std::unique_ptr<BackendRuntime> runtime_ = kCpuBackend.create(Device::Cpu());
};

TEST_F(WeightsTest, EmbeddedAreUsedInPlace) {
  const auto blob = Blob();
  const auto weights = Embedded(blob);
  EXPECT_EQ(weights->data(), blob.data() + 256);
  EXPECT_EQ(weights->bytes(), test_model::kWeightsBytes);
  EXPECT_EQ(weights->allocated_bytes(), 0u);
}

TEST_F(WeightsTest, FilesAreSharedWhileInUse) {
  const std::string path = Write("shared.bin", Blob(7));
  const AllocationCounters before = Allocations();
  auto first = File(path);
  EXPECT_EQ(First(*first), 7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % 256, 0u);
  EXPECT_EQ(File(path), first);
  // Equal weights are shared whatever the file's name.
  EXPECT_EQ(File(Write("copy.bin", Blob(7))), first);
  EXPECT_EQ(Allocations().allocations, before.allocations + 1);
  EXPECT_EQ(Allocations().live_bytes, before.live_bytes + 512);
  const auto other = File(Write("other.bin", Blob(8)));
  EXPECT_EQ(First(*other), 8);
  first.reset();
  EXPECT_EQ(Allocations().live_bytes, before.live_bytes + 512);
}

TEST_F(WeightsTest, Absent) {
  ExpectThrows<WeightsError>([&] { File("/no/such/weights.bin"); },
                             "weights file '/no/such/weights.bin' cannot be read (No such file or "
                             "directory); SessionOptions::weights_file must name the *_weights.bin "
                             "generated with model 'test_model'");
  ExpectThrows<WeightsError>([&] { Embedded({}); },
                             "model 'test_model' was built without its weights; set "
                             "SessionOptions::weights_file to its *_weights.bin");
}

TEST_F(WeightsTest, Truncated) {
  auto blob = Blob();
  blob.resize(256 + 100);
  ExpectThrows<WeightsError>(
      [&] { Embedded(blob); },
      "embedded weights of model 'test_model' is truncated: 100 bytes of weights are present, but "
      "model 'test_model' has 512; generate the weights again");
  blob.resize(255);
  const std::string path = Write("truncated.bin", blob);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is truncated: 255 bytes are fewer than its header's 256; "
                                 "generate the weights again");
}

TEST_F(WeightsTest, OfAnotherGraph) {
  auto blob = Blob();
  blob[20] ^= std::byte{1};
  const std::string path = Write("foreign.bin", blob);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' belongs to another graph than model 'test_model'; generate "
                                 "model and weights from the same ONNX file");
  EXPECT_THROW(Embedded(blob), WeightsError);
}

TEST_F(WeightsTest, Corrupt) {
  auto blob = Blob();
  blob[300] ^= std::byte{1};
  const std::string path = Write("corrupt.bin", blob);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is corrupt: its contents do not match its checksum; generate "
                                 "or copy it again");
}

TEST_F(WeightsTest, TooLong) {
  auto blob = Blob();
  blob.push_back(std::byte{0});
  const std::string path = Write("long.bin", blob);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is corrupt: 513 bytes of weights are present, but model "
                                 "'test_model' has 512; generate the weights again");
}

TEST_F(WeightsTest, HeaderWithAnotherSize) {
  auto blob = Blob();
  blob[49] = std::byte{9};
  EXPECT_THROW(Embedded(blob), WeightsError);
}

TEST_F(WeightsTest, NotWeights) {
  const std::string path = Write("onnx.bin", std::vector<std::byte>(1000, std::byte{8}));
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' holds no weights (it does not start with SOFIEWT1); give the "
                                 "*_weights.bin generated with model 'test_model'");
}

TEST_F(WeightsTest, AnotherVersion) {
  auto blob = Blob();
  blob[8] = std::byte{2};
  const std::string path = Write("version.bin", blob);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' has format version 2, but this build reads version 1; "
                                 "generate the weights again");
}

TEST_F(WeightsTest, DirectoryIsNoFile) { EXPECT_THROW(File(testing::TempDir()), WeightsError); }

}  // namespace
}  // namespace sofie
