// A small model written by hand, for tests of the runtime. Its steps only copy, so that every
// backend can run it without kernels of its own.
//
//   points [N, 2, P] → t0 → t1 → copied [N, 2, P]
//   mask [N, P] → mask_copy [N, P]
//   the first four weights → tags [N, 4]
// The shape program refuses P below kMinPoints, as TopK refuses a k larger than its axis.
#ifndef SOFIE_RUNTIME_TEST_MODEL_H_
#define SOFIE_RUNTIME_TEST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sofie/runtime/model_info.h"

namespace sofie::test_model {

inline constexpr int64_t kMinPoints = 2;
inline constexpr size_t kWeightsBytes = 512;
inline constexpr size_t kWeightsOffset = 256;  // where they begin in their file

const ModelInfo& Info();

// How a backend copies within its memory.
using CopyFn = void (*)(LaunchContext& context, void* to, const void* from, size_t bytes);

// The steps, for EnqueueFn implementations.
void Enqueue(CopyFn copy, LaunchContext& context, const int64_t* symbols, void* const* buffers,
             const std::byte* weights);

// Enqueue for host memory.
void EnqueueOnHost(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                   const std::byte* weights);

// A weights file of the model whose weights are first, first + 1, …
std::vector<std::byte> WeightsFile(float first = 1);

// Inputs for (n, p) that differ from those for other seeds, and space for outputs.
struct Tensors {
  Tensors(int64_t n, int64_t p, float seed);
  int64_t n;
  int64_t p;
  std::vector<float> points;
  std::vector<float> mask;
  std::vector<float> copied;
  std::vector<float> mask_copy;
  std::vector<float> tags;

  std::vector<TensorView> Inputs() const;
  std::vector<MutableTensorView> Outputs();
  // "" if the outputs are what the model gives with WeightsFile(first), else what differs.
  std::string Mismatch(float first = 1) const;
};

}  // namespace sofie::test_model

#endif  // SOFIE_RUNTIME_TEST_MODEL_H_
