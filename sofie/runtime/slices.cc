#include "sofie/runtime/slices.h"

#include <cstddef>

namespace sofie {
namespace {

// Bytes from the start of a row to that of the next. `extent` elements of the first axis are one.
template <class TView>
size_t RowBytes(const TView& view, int64_t extent) {
  Shape row = view.shape;
  row[0] = extent;
  if (view.strides.rank() == 0 || view.strides[0] == kPacked) {
    return BytesOf(view.dtype, row.elements());
  }
  return BytesOf(view.dtype, view.strides[0] * extent);
}

template <class TView, class Byte>
TView Slice(TView view, Byte* data, int64_t rows, int64_t first, int64_t count) {
  const int64_t extent = view.shape[0] / rows;
  view.data = data + first * static_cast<int64_t>(RowBytes(view, extent));
  view.shape[0] = count * extent;
  return view;
}

}  // namespace

std::vector<TensorView> SliceOf(const ModelInfo& info, std::span<const TensorView> inputs,
                                int64_t rows, int64_t first, int64_t count) {
  std::vector<TensorView> slices(inputs.begin(), inputs.end());
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::span<const DimInfo> dims = info.inputs[i].dims;
    if (dims.empty() || dims[0].symbol != info.batch_symbol) continue;
    slices[i] = Slice(inputs[i], static_cast<const std::byte*>(inputs[i].data), rows, first, count);
  }
  return slices;
}

std::vector<MutableTensorView> SliceOf(std::span<const MutableTensorView> outputs, int64_t rows,
                                       int64_t first, int64_t count) {
  std::vector<MutableTensorView> slices(outputs.begin(), outputs.end());
  for (MutableTensorView& slice : slices) {
    slice = Slice(slice, static_cast<std::byte*>(slice.data), rows, first, count);
  }
  return slices;
}

}  // namespace sofie
