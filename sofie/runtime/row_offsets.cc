#include "sofie/runtime/row_offsets.h"

#include <algorithm>
#include <string>

#include "sofie/runtime/error.h"

namespace sofie {
namespace {

// Messages are made for errors alone: a run allocates nothing. What they call the offsets:
std::string Name(const ModelInfo& info, const ReadInfo& read) {
  return std::string("input '") + info.inputs[read.buffer].name + "'";
}

[[noreturn]] void ThrowOffsets(const ModelInfo& info, const ReadInfo& read,
                               const std::string& message) {
  throw ShapeError(Name(info, read) + ": " + message);
}

std::span<const int64_t> Offsets(const ModelInfo& info, const ReadInfo& read,
                                 std::span<const TensorView> inputs) {
  const TensorView& view = inputs[read.buffer];
  if (view.memory == Memory::kDevice) {
    throw ArgumentError(Name(info, read) +
                        " is device memory, but the host reads the offsets of rows; give them in "
                        "host memory");
  }
  return {static_cast<const int64_t*>(view.data), static_cast<size_t>(view.shape[0])};
}

// The size of the longest row.
int64_t Longest(const ModelInfo& info, const ReadInfo& read, std::span<const int64_t> offsets,
                int64_t total) {
  if (offsets.front() != 0) {
    ThrowOffsets(info, read,
                 "the first offset is " + std::to_string(offsets.front()) + "; offsets start at 0");
  }
  int64_t longest = 0;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    const int64_t size = offsets[row + 1] - offsets[row];
    if (size < 0) {
      ThrowOffsets(info, read,
                   "offset " + std::to_string(row + 1) + " is " + std::to_string(offsets[row + 1]) +
                       ", less than the one before, " + std::to_string(offsets[row]));
    }
    longest = std::max(longest, size);
  }
  if (offsets.back() != total) {
    ThrowOffsets(info, read,
                 "the last offset is " + std::to_string(offsets.back()) +
                     ", but the other inputs have " + std::to_string(total) +
                     " points; both must be equal");
  }
  return longest;
}

}  // namespace

bool HasRowOffsets(const ModelInfo& info) {
  return std::any_of(info.reads.begin(), info.reads.end(),
                     [](const ReadInfo& read) { return read.total >= 0; });
}

void LearnRows(const ModelInfo& info, std::span<const TensorView> inputs,
               std::span<int64_t> symbols, std::span<int64_t> scratch) {
  int64_t rows = 0;
  for (const ReadInfo& read : info.reads) {
    if (read.total < 0) continue;
    const std::span<const int64_t> offsets = Offsets(info, read, inputs);
    symbols[read.first_symbol] = Longest(info, read, offsets, symbols[read.total]);
    rows = static_cast<int64_t>(offsets.size()) - 1;
  }
  if (info.check_row == nullptr) return;
  std::copy(symbols.begin(), symbols.end(), scratch.begin());
  for (int64_t row = 0; row < rows; ++row) {
    for (const ReadInfo& read : info.reads) {
      if (read.total < 0) continue;
      const int64_t* const offsets = Offsets(info, read, inputs).data() + row;
      scratch[read.total] = offsets[1] - offsets[0];
    }
    try {
      info.check_row(scratch.data());
    } catch (const ShapeError& error) {
      throw ShapeError("row " + std::to_string(row) + ": " + error.what());
    }
  }
}

}  // namespace sofie
