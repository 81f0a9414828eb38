// Checks tensors against a model and takes the values of its symbols from them.
#ifndef SOFIE_RUNTIME_BINDING_H_
#define SOFIE_RUNTIME_BINDING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sofie/runtime/model_info.h"
#include "sofie/runtime/view.h"

namespace sofie {

// "[N, 2, n_pf]".
std::string DimsToString(const ModelInfo& info, std::span<const DimInfo> dims);

// "N = 1, n_pf = 100"; "no symbols" if there are none.
std::string SymbolsToString(const ModelInfo& info, std::span<const int64_t> symbols);

// Writes the value of every size and stride. Throws ArgumentError for a wrong number of inputs or
// null data, DTypeError, and ShapeError for a rank or an extent that contradicts the model or
// another input, or for strides that no input of this model can have. Data may be null where a
// shape has no elements.
void BindSymbols(const ModelInfo& info, std::span<const TensorView> inputs,
                 std::span<int64_t> symbols);

// Throws unless the outputs of a segment fit `shapes`, and overlap neither each other nor an input
// in memory of the same kind.
void CheckOutputs(const ModelInfo& info, int segment, std::span<const Shape> shapes,
                  std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);

// What the caller gives for the symbols, with strides in the place of kPacked. Throws ArgumentError
// unless there is one value for each symbol, ShapeError if a size or a stride is negative.
std::vector<int64_t> CompleteSymbols(const ModelInfo& info, std::span<const int64_t> symbols);

// An input's shape and strides as the symbols have them; no strides for one that is always packed.
TensorView InputLayout(const TensorInfo& input, std::span<const int64_t> symbols);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_BINDING_H_
