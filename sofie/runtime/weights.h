// The weights of a model: reads and checks the file, and puts one copy on each device for all
// sessions that use it.
//
// The file is in the safetensors format, and what is embedded in a program has the same bytes: u64
// size of the header, little endian; the header, JSON that begins with
//   {"__metadata__":{"sofie_weights":"2","graph":"<64 digits>","sha256":"<64 digits>"}
// and ends with blanks; the payload, from a multiple of 256 bytes on, as every tensor in it. The
// hash of the graph stands for the rest of the header: names, types and places of tensors. The
// other hash is the payload's.
#ifndef SOFIE_RUNTIME_WEIGHTS_H_
#define SOFIE_RUNTIME_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/model_info.h"

namespace sofie {

class Weights {
 public:
  Weights(const std::byte* data, size_t bytes, std::unique_ptr<DeviceMemory> memory)
      : data_(data), bytes_(bytes), memory_(std::move(memory)) {}

  // The file's payload, in memory that the device's kernels can read.
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
