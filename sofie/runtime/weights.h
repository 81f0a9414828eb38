// The weights of a model: reads and checks the blob, and puts one copy on each device for all
// sessions that use it.
//
// Blob, little endian: a header of 256 bytes (magic "SOFIEWT1", u32 version = 1, u32 header bytes =
// 256, graph hash [32], u64 payload bytes, SHA-256 of the payload [32], zeros), then the payload,
// in which every tensor starts at a multiple of 256 bytes.
#ifndef SOFIE_RUNTIME_WEIGHTS_H_
#define SOFIE_RUNTIME_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/model_info.h"

namespace sofie {

inline constexpr size_t kWeightsHeaderBytes = 256;
inline constexpr char kWeightsMagic[] = "SOFIEWT1";

class Weights {
 public:
  Weights(const std::byte* data, size_t bytes, std::unique_ptr<DeviceMemory> memory)
      : data_(data), bytes_(bytes), memory_(std::move(memory)) {}

  // The payload, in memory that the device's kernels can read.
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Bytes allocated for it: 0 where embedded weights are read in place.
  size_t allocated_bytes() const { return memory_ ? memory_->bytes() : 0; }

 private:
  const std::byte* data_;
  size_t bytes_;
  std::unique_ptr<DeviceMemory> memory_;
};

// The weights of `info` on the runtime's device: from `file`, or from `embedded` where `file` is
// empty. Sessions on one device with equal weights share them; they are freed with the last one. On
// the CPU embedded weights are used where they are. Only files are checked against their checksum:
// embedded weights are as intact as the program around them.
// Throws WeightsError if they are absent, truncated, corrupt, or of another graph.
std::shared_ptr<const Weights> LoadWeights(const ModelInfo& info,
                                           std::span<const std::byte> embedded,
                                           const std::string& file, const Device& device,
                                           BackendRuntime& runtime);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_WEIGHTS_H_
