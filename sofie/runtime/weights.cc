#include "sofie/runtime/weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/sha256.h"

namespace sofie {
namespace {

static_assert(std::endian::native == std::endian::little, "weights are little endian");

using Digest = std::array<uint8_t, 32>;

constexpr size_t kVersionOffset = 8;
constexpr size_t kHeaderBytesOffset = 12;
constexpr size_t kGraphHashOffset = 16;
constexpr size_t kPayloadBytesOffset = 48;
constexpr size_t kPayloadHashOffset = 56;
constexpr uint32_t kVersion = 1;

template <class T>
T ReadAt(std::span<const std::byte> blob, size_t offset) {
  T value;
  std::memcpy(&value, blob.data() + offset, sizeof(value));
  return value;
}

// Checks all but the payload's contents; returns the payload's hash as the header has it.
// `source` names the blob: "weights file 'x.bin'".
Digest CheckHeader(const ModelInfo& info, std::span<const std::byte> blob,
                   const std::string& source) {
  const std::string model = std::string("model '") + info.name + "'";
  if (blob.size() < kWeightsHeaderBytes) {
    throw WeightsError(source + " is truncated: " + std::to_string(blob.size()) +
                       " bytes are fewer than its header's " + std::to_string(kWeightsHeaderBytes) +
                       "; generate the weights again");
  }
  if (std::memcmp(blob.data(), kWeightsMagic, 8) != 0) {
    throw WeightsError(source + " holds no weights (it does not start with " + kWeightsMagic +
                       "); give the *_weights.bin generated with " + model);
  }
  const auto version = ReadAt<uint32_t>(blob, kVersionOffset);
  const auto header_bytes = ReadAt<uint32_t>(blob, kHeaderBytesOffset);
  if (version != kVersion || header_bytes != kWeightsHeaderBytes) {
    throw WeightsError(source + " has format version " + std::to_string(version) +
                       ", but this build reads version " + std::to_string(kVersion) +
                       "; generate the weights again");
  }
  const auto graph_hash = ReadAt<Digest>(blob, kGraphHashOffset);
  if (!std::equal(graph_hash.begin(), graph_hash.end(), info.graph_hash.begin())) {
    throw WeightsError(source + " belongs to another graph than " + model +
                       "; generate model and weights from the same ONNX file");
  }
  const auto payload_bytes = ReadAt<uint64_t>(blob, kPayloadBytesOffset);
  if (payload_bytes != info.weights_bytes) {
    throw WeightsError(source + " is corrupt: its header has " + std::to_string(payload_bytes) +
                       " bytes of weights, but " + model + " has " +
                       std::to_string(info.weights_bytes) + "; generate the weights again");
  }
  const size_t present = blob.size() - kWeightsHeaderBytes;
  if (present != info.weights_bytes) {
    throw WeightsError(
        source + (present < info.weights_bytes ? " is truncated: " : " is corrupt: ") +
        std::to_string(present) + " bytes of weights are present, but " + model + " has " +
        std::to_string(info.weights_bytes) + "; generate the weights again");
  }
  return ReadAt<Digest>(blob, kPayloadHashOffset);
}

std::vector<std::byte> ReadFile(const std::string& path, const ModelInfo& info) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);  // an error for a directory
  std::vector<std::byte> data;
  if (!error) {
    // What is too large is told from its header; no need to read it.
    const uintmax_t wanted = kWeightsHeaderBytes + info.weights_bytes;
    data.resize(std::min(bytes, wanted + 1));
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    stream.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
    if (!stream) error.assign(errno != 0 ? errno : EIO, std::generic_category());
  }
  if (error) {
    throw WeightsError("weights file '" + path + "' cannot be read (" + error.message() +
                       "); SessionOptions::weights_file must name the *_weights.bin generated with "
                       "model '" +
                       info.name + "'");
  }
  return data;
}

// (kCpu for all that reads host memory, device index, graph hash, payload hash)
using Key = std::tuple<Backend, int, Digest, Digest>;

std::mutex mutex;

std::map<Key, std::weak_ptr<const Weights>>& Shared() {
  static auto* shared = new std::map<Key, std::weak_ptr<const Weights>>;  // outlives all sessions
  return *shared;
}

}  // namespace

std::shared_ptr<const Weights> LoadWeights(const ModelInfo& info,
                                           std::span<const std::byte> embedded,
                                           const std::string& file, const Device& device,
                                           BackendRuntime& runtime) {
  std::vector<std::byte> contents;
  std::span<const std::byte> blob = embedded;
  std::string source = std::string("embedded weights of model '") + info.name + "'";
  if (!file.empty()) {
    contents = ReadFile(file, info);
    blob = contents;
    source = "weights file '" + file + "'";
  } else if (embedded.empty()) {
    throw WeightsError(std::string("model '") + info.name +
                       "' was built without its weights; set SessionOptions::weights_file to its "
                       "*_weights.bin");
  }

  const Digest payload_hash = CheckHeader(info, blob, source);
  const std::span<const std::byte> payload = blob.subspan(kWeightsHeaderBytes);
  if (!file.empty() && Sha256(payload) != payload_hash) {
    throw WeightsError(source +
                       " is corrupt: its contents do not match its checksum; generate or "
                       "copy it again");
  }
  if (payload.empty()) return std::make_shared<Weights>(nullptr, 0, nullptr);
  if (file.empty() && runtime.host_memory()) {
    return std::make_shared<Weights>(payload.data(), payload.size(), nullptr);
  }

  Digest graph_hash;
  std::copy(info.graph_hash.begin(), info.graph_hash.end(), graph_hash.begin());
  const Key key(runtime.host_memory() ? Backend::kCpu : device.backend(), device.index(),
                graph_hash, payload_hash);
  std::lock_guard lock(mutex);
  std::erase_if(Shared(), [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Weights>& entry = Shared()[key];
  if (std::shared_ptr<const Weights> weights = entry.lock()) return weights;

  std::unique_ptr<DeviceMemory> memory = runtime.AllocateDevice(payload.size(), "weights");
  runtime.Copy(memory->data(), payload.data(), payload.size(), CopyKind::kHostToDevice);
  // Other sessions read them from other queues, and the file's contents end with this call.
  runtime.Synchronize();
  const std::byte* data = memory->data();
  auto weights = std::make_shared<const Weights>(data, payload.size(), std::move(memory));
  entry = weights;
  return weights;
}

}  // namespace sofie
