// Indices that come from tensors.
#ifndef SOFIE_RUNTIME_KERNELS_WRAP_INDEX_H_
#define SOFIE_RUNTIME_KERNELS_WRAP_INDEX_H_

#include <cstdint>

#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

// An index into an axis of `extent` elements: negative ones count from the end. What lies outside
// of
// [-extent, extent - 1], undefined in ONNX, is moved to the nearest element, so that no memory
// outside of the tensor is read.
SOFIE_MATH_FN int64_t WrapIndex(int64_t index, int64_t extent) {
  const int64_t wrapped = index < 0 ? index + extent : index;
  return wrapped < 0 ? 0 : (wrapped < extent ? wrapped : extent - 1);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_WRAP_INDEX_H_
