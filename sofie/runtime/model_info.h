// What the generator tells the runtime about a model: tables of constants with static storage and
// the host shape program.
#ifndef SOFIE_RUNTIME_MODEL_INFO_H_
#define SOFIE_RUNTIME_MODEL_INFO_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "sofie/runtime/device.h"
#include "sofie/runtime/dtype.h"
#include "sofie/runtime/view.h"

namespace sofie {

class LaunchContext;    // sofie/runtime/backend.h
struct BackendFactory;  // sofie/runtime/backend.h

// One extent: the symbol's value plus `value` if symbol ≥ 0, else the static `value`.
struct DimInfo {
  int32_t symbol = -1;
  int64_t value = 0;
};

// An input or output. The dims of outputs inform the reader; output_shapes() decides.
struct TensorInfo {
  const char* name;
  DType dtype;
  std::span<const DimInfo> dims;
  // The symbol that is the stride of the first axis, and behind it those of the others, for an
  // input that may have strides.
  int32_t first_stride = -1;
};

// Memory that is live from the start of first_step to the end of last_step.
struct BufferInfo {
  const char* name;
  int32_t element_size;  // bytes
  int32_t first_step;
  int32_t last_step;
  int32_t elements_per_byte = 1;  // where elements share bytes
  int32_t segment = 0;            // whose steps are the first to write it
};

// A small tensor whose elements the host reads, as the values of symbols.
struct ReadInfo {
  const char* name;
  int32_t buffer;
  DType dtype;
  int32_t first_symbol;
  int32_t symbols;  // one for each element
  // Of an input with the offsets of rows that have sizes of their own, the symbol that counts the
  // points of all rows: then the only symbol that is read is the size of the longest row.
  int32_t total = -1;
};

// Steps that are launched when the host has read what earlier ones computed.
struct SegmentInfo {
  std::span<const ReadInfo> reads;
  // As in ModelInfo, for the buffers and outputs of this segment; later symbols are not known yet.
  void (*buffer_bytes)(const int64_t* symbols, int64_t* bytes);
  void (*output_shapes)(const int64_t* symbols, Shape* shapes);
};

struct StepInfo {
  const char* name;    // the nodes it computes: "/conv/Conv + BatchNormalization + Relu"
  const char* kernel;  // functor or library call: "Concat_12", "gemm"
};

struct ModelInfo {
  const char* name;
  const char* cpp_namespace;
  const char* generator_version;
  // Sizes in order of first use by the inputs, then strides of inputs that may have any, then
  // elements of tensors in the order in which they are read. The value of a real number is the bits
  // of a double.
  std::span<const char* const> symbols;
  std::span<const TensorInfo> inputs;
  std::span<const TensorInfo> outputs;
  // [inputs…, outputs…, intermediates…]: input i is buffer i, output j is inputs.size() + j.
  std::span<const BufferInfo> buffers;
  std::span<const StepInfo> steps;
  // Hash of everything but the weights' values; must equal the one in the weights file.
  std::span<const uint8_t, 32> graph_hash;
  // Bytes that the payload of the weights file must have.
  size_t weights_bytes;
  // The host shape program: bytes of every buffer, shapes of every output, but for those of later
  // segments. `symbols` has one value for each symbol. Throws ShapeError where the sizes are
  // illegal, such as k > the axis of TopK.
  void (*buffer_bytes)(const int64_t* symbols, int64_t* bytes);
  void (*output_shapes)(const int64_t* symbols, Shape* shapes);
  // True if the steps need LaunchContext::random_state.
  bool has_random_state = false;
  // Inputs that are read before the first step.
  std::span<const ReadInfo> reads = {};
  // What comes after the first segment.
  std::span<const SegmentInfo> segments = {};
  // Throws ShapeError where a row's own sizes are illegal, where rows have any: `symbols` has them
  // in place of the totals.
  void (*check_row)(const int64_t* symbols) = nullptr;
  // The symbol that counts the rows of a batch, if it is proved that no row of an output depends on
  // other rows of the inputs, nor on how many there are; else -1. Every output has rows along its
  // first axis, and so has every input that has the symbol.
  int32_t batch_symbol = -1;
  // Why there is none: "node 'n' (Gather) gathers rows by indices".
  const char* batch_refusal = "";
};

// How many of the symbols are sizes or strides.
constexpr size_t SizeCount(const ModelInfo& info) {
  size_t elements = 0;
  for (const ReadInfo& read : info.reads) elements += read.symbols;
  for (const SegmentInfo& segment : info.segments) {
    for (const ReadInfo& read : segment.reads) elements += read.symbols;
  }
  return info.symbols.size() - elements;
}

// Puts the steps of LaunchContext::segment() into the context's queue, and tells its observer. At
// the same sizes the kernels are the same, wherever buffers are. buffers[i] is the memory of
// ModelInfo::buffers[i]; `weights` is the payload. Pointers are device memory on a device backend.
using EnqueueFn = void (*)(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                           const std::byte* weights);

// A backend that this build of the model contains.
struct BackendProgram {
  Backend backend;
  EnqueueFn enqueue;
  const BackendFactory* runtime;  // &kCpuBackend, &kOpenMpBackend, &kCudaBackend
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_MODEL_INFO_H_
