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
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/sha256.h"

namespace sofie {
namespace {

static_assert(std::endian::native == std::endian::little, "weights are little endian");

using Digest = std::array<uint8_t, 32>;

// What the file begins with, behind the size of the header.
constexpr std::string_view kMark = R"({"__metadata__":{"sofie_weights":")";
constexpr std::string_view kVersion = "2";
constexpr std::string_view kBeforeGraphHash = R"(","graph":")";
constexpr std::string_view kBeforePayloadHash = R"(","sha256":")";
constexpr size_t kHexDigits = 2 * std::tuple_size_v<Digest>;

constexpr size_t kMarkOffset = sizeof(uint64_t);
constexpr size_t kVersionOffset = kMarkOffset + kMark.size();
constexpr size_t kGraphHashOffset = kVersionOffset + kVersion.size() + kBeforeGraphHash.size();
constexpr size_t kPayloadHashOffset = kGraphHashOffset + kHexDigits + kBeforePayloadHash.size();
// The bytes of a file that are read before its size is known to be right.
constexpr size_t kStartBytes = kPayloadHashOffset + kHexDigits;

std::string ToHex(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

struct Header {
  size_t payload_offset;
  std::string payload_hash;  // in hexadecimal digits
};

// Checks all but the payload's contents. `start` is what the file begins with, at least kStartBytes
// of it if it has as many; `bytes` is its size, and `source` names it: "weights file 'x'".
Header CheckHeader(const ModelInfo& info, std::span<const std::byte> start, uint64_t bytes,
                   const std::string& source) {
  const std::string model = std::string("model '") + info.name + "'";
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  const auto text_at = [&](size_t offset, size_t size) {
    return text.substr(std::min(offset, text.size()), size);
  };
  if (!kMark.starts_with(text_at(kMarkOffset, kMark.size()))) {
    throw WeightsError(source + " holds no weights of a compiled model; give the " +
                       "*_weights.safetensors generated with " + model);
  }
  if (bytes < kStartBytes) {
    throw WeightsError(source + " is truncated: it ends after " + std::to_string(bytes) +
                       " bytes, within its header; generate the weights again");
  }
  if (text_at(kVersionOffset, kVersion.size()) != kVersion) {
    throw WeightsError(source + " has another format version than this build reads, which is " +
                       std::string(kVersion) + "; generate the weights again");
  }
  if (text_at(kGraphHashOffset, kHexDigits) != ToHex(info.graph_hash)) {
    throw WeightsError(source + " belongs to another graph than " + model +
                       "; generate model and weights from the same ONNX file");
  }
  uint64_t header_bytes;
  std::memcpy(&header_bytes, start.data(), sizeof(header_bytes));
  const uint64_t payload_offset =
      sizeof(header_bytes) + std::min(header_bytes, bytes - sizeof(header_bytes));
  const uint64_t present = bytes - payload_offset;
  if (present != info.weights_bytes) {
    throw WeightsError(
        source + (present < info.weights_bytes ? " is truncated: " : " is corrupt: ") +
        std::to_string(present) + " bytes of weights are present, but " + model + " has " +
        std::to_string(info.weights_bytes) + "; generate the weights again");
  }
  return {.payload_offset = payload_offset,
          .payload_hash = std::string(text_at(kPayloadHashOffset, kHexDigits))};
}

// A file of weights, which is read in parts: what has the wrong size is told from its header.
class File {
 public:
  File(const std::string& path, const ModelInfo& info) : path_(path), model_(info.name) {
    std::error_code error;
    bytes_ = std::filesystem::file_size(path, error);  // an error for a directory
    if (error) Fail(error);
    errno = 0;
    stream_.open(path, std::ios::binary);
    if (!stream_) Fail({errno != 0 ? errno : EIO, std::generic_category()});
  }

  uint64_t bytes() const { return bytes_; }

  std::vector<std::byte> Read(uint64_t offset, uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    errno = 0;
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes));
    if (!stream_) Fail({errno != 0 ? errno : EIO, std::generic_category()});
    return data;
  }

 private:
  [[noreturn]] void Fail(const std::error_code& error) const {
    throw WeightsError("weights file '" + path_ + "' cannot be read (" + error.message() +
                       "); SessionOptions::weights_file must name the *_weights.safetensors "
                       "generated with model '" +
                       model_ + "'");
  }

  std::string path_;
  std::string model_;
  uint64_t bytes_ = 0;
  std::ifstream stream_;
};

// (kCpu for all that reads host memory, device index, graph hash, payload hash)
using Key = std::tuple<Backend, int, Digest, std::string>;

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
  std::span<const std::byte> payload;
  Header header;
  if (!file.empty()) {
    const std::string source = "weights file '" + file + "'";
    File opened(file, info);
    const std::vector<std::byte> start =
        opened.Read(0, std::min<uint64_t>(kStartBytes, opened.bytes()));
    header = CheckHeader(info, start, opened.bytes(), source);
    contents = opened.Read(header.payload_offset, info.weights_bytes);
    payload = contents;
    if (ToHex(Sha256(payload)) != header.payload_hash) {
      throw WeightsError(source +
                         " is corrupt: its contents do not match its checksum; generate or "
                         "copy it again");
    }
  } else if (embedded.empty()) {
    throw WeightsError(std::string("model '") + info.name +
                       "' was built without its weights; set SessionOptions::weights_file to its "
                       "*_weights.safetensors");
  } else {
    header = CheckHeader(info, embedded, embedded.size(),
                         std::string("embedded weights of model '") + info.name + "'");
    payload = embedded.subspan(header.payload_offset);
  }
  if (payload.empty()) return std::make_shared<Weights>(nullptr, 0, nullptr);
  if (file.empty() && runtime.host_memory()) {
    return std::make_shared<Weights>(payload.data(), payload.size(), nullptr);
  }

  Digest graph_hash;
  std::copy(info.graph_hash.begin(), info.graph_hash.end(), graph_hash.begin());
  const Key key(runtime.host_memory() ? Backend::kCpu : device.backend(), device.index(),
                graph_hash, header.payload_hash);
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
