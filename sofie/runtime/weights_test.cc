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

using test_model::WeightsFile;

class WeightsTest : public testing::Test {
 protected:
  std::shared_ptr<const Weights> Embedded(const std::vector<std::byte>& file) {
    return LoadWeights(test_model::Info(), file, "", Device::Cpu(), *runtime_);
  }
  std::shared_ptr<const Weights> File(const std::string& path) {
    return LoadWeights(test_model::Info(), {}, path, Device::Cpu(), *runtime_);
  }
  std::string Write(const std::string& name, const std::vector<std::byte>& file) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
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
  const auto file = WeightsFile();
  const auto weights = Embedded(file);
  EXPECT_EQ(weights->data(), file.data() + 256);
  EXPECT_EQ(weights->bytes(), test_model::kWeightsBytes);
  EXPECT_EQ(weights->allocated_bytes(), 0u);
}

TEST_F(WeightsTest, FilesAreSharedWhileInUse) {
  const std::string path = Write("shared.safetensors", WeightsFile(7));
  const AllocationCounters before = Allocations();
  auto first = File(path);
  EXPECT_EQ(First(*first), 7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % 256, 0u);
  EXPECT_EQ(File(path), first);
  // Equal weights are shared whatever the file's name.
  EXPECT_EQ(File(Write("copy.safetensors", WeightsFile(7))), first);
  EXPECT_EQ(Allocations().allocations, before.allocations + 1);
  EXPECT_EQ(Allocations().live_bytes, before.live_bytes + 512);
  const auto other = File(Write("other.safetensors", WeightsFile(8)));
  EXPECT_EQ(First(*other), 8);
  first.reset();
  EXPECT_EQ(Allocations().live_bytes, before.live_bytes + 512);
}

TEST_F(WeightsTest, Absent) {
  ExpectThrows<WeightsError>([&] { File("/no/such/file"); },
                             "weights file '/no/such/file' cannot be read (No such file or "
                             "directory); SessionOptions::weights_file must name the "
                             "*_weights.safetensors generated with model 'test_model'");
  ExpectThrows<WeightsError>([&] { Embedded({}); },
                             "model 'test_model' was built without its weights; set "
                             "SessionOptions::weights_file to its *_weights.safetensors");
}

// A file that ends anywhere is refused, and what it is found to be has not to be read for that.
TEST_F(WeightsTest, Truncated) {
  const auto whole = WeightsFile();
  auto file = whole;
  file.resize(256 + 100);
  ExpectThrows<WeightsError>(
      [&] { Embedded(file); },
      "embedded weights of model 'test_model' is truncated: 100 bytes of weights are present, but "
      "model 'test_model' has 512; generate the weights again");
  file.resize(100);
  const std::string path = Write("truncated.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is truncated: it ends after 100 bytes, within its header; "
                                 "generate the weights again");
  for (size_t size = 0; size < whole.size(); ++size) {
    file.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(Embedded(file), WeightsError) << size;
    EXPECT_THROW(File(Write("truncated.safetensors", file)), WeightsError) << size;
  }
}

TEST_F(WeightsTest, OfAnotherGraph) {
  auto file = WeightsFile();
  file[8 + 46] = std::byte{'f'};
  const std::string path = Write("foreign.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' belongs to another graph than model 'test_model'; generate "
                                 "model and weights from the same ONNX file");
  EXPECT_THROW(Embedded(file), WeightsError);
}

TEST_F(WeightsTest, Corrupt) {
  auto file = WeightsFile();
  file[300] ^= std::byte{1};
  const std::string path = Write("corrupt.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is corrupt: its contents do not match its checksum; generate "
                                 "or copy it again");
}

TEST_F(WeightsTest, TooLong) {
  auto file = WeightsFile();
  file.push_back(std::byte{0});
  const std::string path = Write("long.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' is corrupt: 513 bytes of weights are present, but model "
                                 "'test_model' has 512; generate the weights again");
}

TEST_F(WeightsTest, HeaderOfAnotherSize) {
  for (const int byte : {0, 1, 7}) {
    auto file = WeightsFile();
    file[byte] ^= std::byte{0x80};
    EXPECT_THROW(Embedded(file), WeightsError) << byte;
    EXPECT_THROW(File(Write("header.safetensors", file)), WeightsError) << byte;
  }
}

TEST_F(WeightsTest, NotWeights) {
  const std::string message =
      " holds no weights of a compiled model; give the *_weights.safetensors generated with model "
      "'test_model'";
  std::string path = Write("onnx.safetensors", std::vector<std::byte>(1000, std::byte{8}));
  ExpectThrows<WeightsError>([&] { File(path); }, "weights file '" + path + "'" + message);
  // What another program wrote.
  const std::string header = R"({"w":{"dtype":"F32","shape":[128],"data_offsets":[0,512]}})";
  std::vector<std::byte> file(8 + header.size() + 512);
  file[0] = static_cast<std::byte>(header.size());
  std::memcpy(file.data() + 8, header.data(), header.size());
  path = Write("foreign.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); }, "weights file '" + path + "'" + message);
}

TEST_F(WeightsTest, AnotherVersion) {
  auto file = WeightsFile();
  file[8 + 34] = std::byte{'1'};
  const std::string path = Write("version.safetensors", file);
  ExpectThrows<WeightsError>([&] { File(path); },
                             "weights file '" + path +
                                 "' has another format version than this build reads, which is 2; "
                                 "generate the weights again");
}

TEST_F(WeightsTest, DirectoryIsNoFile) { EXPECT_THROW(File(testing::TempDir()), WeightsError); }

}  // namespace
}  // namespace sofie
