#include "sofie/runtime/binding.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>

#include "sofie/runtime/error.h"

namespace sofie {
namespace {

std::string Quoted(const char* kind, const char* name) {
  return std::string(kind) + " '" + name + "'";
}

std::string AtAxis(const char* kind, const char* name, int axis) {
  return Quoted(kind, name) + ", axis " + std::to_string(axis);
}

// Where a symbol got its value: "input 'x', axis 0".
std::string FirstUse(const ModelInfo& info, int32_t symbol) {
  for (const TensorInfo& input : info.inputs) {
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      if (input.dims[axis].symbol == symbol) {
        return AtAxis("input", input.name, static_cast<int>(axis));
      }
    }
  }
  return "no input";
}

void CheckCount(const ModelInfo& info, const char* kind, size_t given, size_t wanted) {
  if (given == wanted) return;
  throw ArgumentError(std::string("model '") + info.name + "' has " + std::to_string(wanted) + " " +
                      kind + "s, but " + std::to_string(given) + " were given");
}

void CheckDType(const char* kind, const TensorInfo& tensor, DType given) {
  if (given == tensor.dtype) return;
  throw DTypeError(Quoted(kind, tensor.name) + ": " + NameOf(given) + " given, but the model has " +
                   NameOf(tensor.dtype) + "; convert the data");
}

void CheckData(const char* kind, const TensorInfo& tensor, const void* data, const Shape& shape) {
  if (data != nullptr || shape.elements() == 0) return;
  throw ArgumentError(Quoted(kind, tensor.name) + ": data is null, but shape " + ToString(shape) +
                      " has " + std::to_string(shape.elements()) + " elements");
}

// True if the two ranges of bytes share any.
bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto* a_begin = static_cast<const std::byte*>(a);
  const auto* b_begin = static_cast<const std::byte*>(b);
  return std::less<>()(a_begin, b_begin + b_bytes) && std::less<>()(b_begin, a_begin + a_bytes);
}

template <class TView>
size_t BytesOf(const TView& view) {
  return sofie::BytesOf(view.dtype, ElementsSpanned(view.shape, view.strides));
}

void CheckStrides(const TensorInfo& tensor, const Shape& shape, const Strides& strides) {
  if (strides.rank() == 0) return;
  if (strides.rank() != shape.rank()) {
    throw ShapeError(Quoted("input", tensor.name) + ": strides " + ToString(strides) +
                     " and shape " + ToString(shape) +
                     " differ in length; give one stride for each axis, or none");
  }
  if (tensor.first_stride < 0) {
    if (IsPacked(shape, strides)) return;
    throw ArgumentError(Quoted("input", tensor.name) + ": shape " + ToString(shape) +
                        " with strides " + ToString(strides) +
                        " is not packed, but the model reads this input packed; name it in "
                        "strided_inputs of the model's onnx_cc_library, or pack the data");
  }
  for (int axis = 0; axis < strides.rank(); ++axis) {
    if (strides[axis] >= 0) continue;
    throw ShapeError(AtAxis("input", tensor.name, axis) + ": stride " +
                     std::to_string(strides[axis]) + " is negative; strides start at 0");
  }
}

// Writes strides that are kPacked, and those that no element depends on: they are the same for
// all views then.
void CompleteStrides(const TensorInfo& tensor, std::span<int64_t> symbols) {
  if (tensor.first_stride < 0) return;
  const Shape shape = InputLayout(tensor, symbols).shape;
  const bool empty = shape.elements() == 0;
  int64_t packed = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    int64_t& stride = symbols[tensor.first_stride + axis];
    if (empty) {
      stride = 0;
    } else if (stride == kPacked || shape[axis] == 1) {
      stride = packed;
    }
    if (__builtin_mul_overflow(packed, shape[axis], &packed)) {
      packed = std::numeric_limits<int64_t>::max();
    }
  }
}

}  // namespace

TensorView InputLayout(const TensorInfo& input, std::span<const int64_t> symbols) {
  TensorView view;
  view.dtype = input.dtype;
  for (const DimInfo& dim : input.dims) {
    view.shape.Append(dim.symbol >= 0 ? symbols[dim.symbol] + dim.value : dim.value);
    if (input.first_stride < 0) continue;
    view.strides.Append(symbols[input.first_stride + view.strides.rank()]);
  }
  return view;
}

std::string DimsToString(const ModelInfo& info, std::span<const DimInfo> dims) {
  std::string text = "[";
  for (const DimInfo& dim : dims) {
    if (text.size() > 1) text += ", ";
    if (dim.symbol >= 0) text += info.symbols[dim.symbol];
    if (dim.symbol >= 0 && dim.value > 0) text += " + ";
    if (dim.symbol < 0 || dim.value > 0) text += std::to_string(dim.value);
  }
  return text + "]";
}

std::string SymbolsToString(const ModelInfo& info, std::span<const int64_t> symbols) {
  if (symbols.empty()) return "no symbols";
  std::string text;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::string(info.symbols[i]) + " = " + std::to_string(symbols[i]);
  }
  return text;
}

void BindSymbols(const ModelInfo& info, std::span<const TensorView> inputs,
                 std::span<int64_t> symbols) {
  CheckCount(info, "input", inputs.size(), info.inputs.size());
  static_assert(kPacked == -1);
  for (int64_t& value : symbols) value = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& tensor = info.inputs[i];
    const TensorView& view = inputs[i];
    CheckDType("input", tensor, view.dtype);
    if (view.shape.rank() != static_cast<int>(tensor.dims.size())) {
      throw ShapeError(Quoted("input", tensor.name) + ": shape " + ToString(view.shape) +
                       " has rank " + std::to_string(view.shape.rank()) + ", but the model has " +
                       DimsToString(info, tensor.dims) + " of rank " +
                       std::to_string(tensor.dims.size()));
    }
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      const DimInfo& dim = tensor.dims[axis];
      const int64_t extent = view.shape[axis];
      if (extent < 0) {
        throw ShapeError(AtAxis("input", tensor.name, axis) + ": extent " + std::to_string(extent) +
                         " is negative; extents start at 0");
      }
      if (dim.symbol < 0) {
        if (extent == dim.value) continue;
        throw ShapeError(AtAxis("input", tensor.name, axis) + ": extent " + std::to_string(extent) +
                         ", but the model fixes it at " + std::to_string(dim.value) + " (" +
                         DimsToString(info, tensor.dims) + ")");
      }
      if (extent < dim.value) {
        throw ShapeError(AtAxis("input", tensor.name, axis) + ": extent " + std::to_string(extent) +
                         ", but it must be at least " + std::to_string(dim.value) + " (" +
                         DimsToString(info, tensor.dims) + ")");
      }
      int64_t& value = symbols[dim.symbol];
      if (value < 0) value = extent - dim.value;
      if (value != extent - dim.value) {
        throw ShapeError(AtAxis("input", tensor.name, axis) + ": extent " + std::to_string(extent) +
                         " contradicts " + info.symbols[dim.symbol] + " = " +
                         std::to_string(value) + " of " + FirstUse(info, dim.symbol) +
                         "; both must be equal");
      }
    }
    CheckData("input", tensor, view.data, view.shape);
    CheckStrides(tensor, view.shape, view.strides);
    if (tensor.first_stride >= 0) {
      std::copy(view.strides.begin(), view.strides.end(),
                symbols.begin() + tensor.first_stride);  // else they stay kPacked
    }
  }
  for (const TensorInfo& tensor : info.inputs) CompleteStrides(tensor, symbols);
}

void CheckOutputs(const ModelInfo& info, int segment, std::span<const Shape> shapes,
                  std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  CheckCount(info, "output", outputs.size(), info.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (info.buffers[info.inputs.size() + i].segment != segment) continue;
    const TensorInfo& tensor = info.outputs[i];
    const MutableTensorView& view = outputs[i];
    CheckDType("output", tensor, view.dtype);
    if (view.shape != shapes[i]) {
      throw ShapeError(Quoted("output", tensor.name) + ": the buffer has shape " +
                       ToString(view.shape) + ", but these inputs give " + ToString(shapes[i]));
    }
    CheckData("output", tensor, view.data, view.shape);
    if (!IsPacked(view.shape, view.strides)) {
      throw ArgumentError(Quoted("output", tensor.name) + ": shape " + ToString(view.shape) +
                          " with strides " + ToString(view.strides) +
                          " is not packed; outputs are written packed: leave the strides out");
    }
    const size_t bytes = BytesOf(view);
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j].memory == view.memory &&
          Overlap(view.data, bytes, inputs[j].data, BytesOf(inputs[j]))) {
        throw ArgumentError(Quoted("output", tensor.name) + " overlaps " +
                            Quoted("input", info.inputs[j].name) +
                            " in memory; give separate buffers");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].memory == view.memory &&
          Overlap(view.data, bytes, outputs[j].data, BytesOf(outputs[j]))) {
        throw ArgumentError(Quoted("output", tensor.name) + " overlaps " +
                            Quoted("output", info.outputs[j].name) +
                            " in memory; give separate buffers");
      }
    }
  }
}

std::vector<int64_t> CompleteSymbols(const ModelInfo& info, std::span<const int64_t> symbols) {
  if (symbols.size() != info.symbols.size()) {
    throw ArgumentError(std::string("model '") + info.name + "' has " +
                        std::to_string(info.symbols.size()) + " symbolic sizes, but " +
                        std::to_string(symbols.size()) + " were given");
  }
  std::vector<int64_t> complete(symbols.begin(), symbols.end());
  for (const TensorInfo& tensor : info.inputs) CompleteStrides(tensor, complete);
  for (size_t i = 0; i < SizeCount(info); ++i) {
    if (complete[i] < 0) {
      throw ShapeError(std::string("size ") + info.symbols[i] + " = " +
                       std::to_string(complete[i]) + " is negative; sizes start at 0");
    }
  }
  return complete;
}

}  // namespace sofie
