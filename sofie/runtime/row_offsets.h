// Batches of rows that have sizes of their own: the offsets at which rows begin.
#ifndef SOFIE_RUNTIME_ROW_OFFSETS_H_
#define SOFIE_RUNTIME_ROW_OFFSETS_H_

#include <cstdint>
#include <span>

#include "sofie/runtime/model_info.h"
#include "sofie/runtime/view.h"

namespace sofie {

// True if the model's rows have sizes of their own.
bool HasRowOffsets(const ModelInfo& info);

// Checks the offsets among the inputs, whose sizes are in `symbols`, and adds the sizes of the
// longest rows to these. `scratch` is as long. Throws ArgumentError if offsets are not in the
// host's memory; ShapeError if they do not begin with 0, fall, or end with another number than that
// of all points, and if a row's sizes are illegal.
void LearnRows(const ModelInfo& info, std::span<const TensorView> inputs,
               std::span<int64_t> symbols, std::span<int64_t> scratch);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_ROW_OFFSETS_H_
