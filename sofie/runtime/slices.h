// Batches whose rows never meet, cut into slices of rows; see ModelInfo::batch_symbol.
#ifndef SOFIE_RUNTIME_SLICES_H_
#define SOFIE_RUNTIME_SLICES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sofie/runtime/model_info.h"
#include "sofie/runtime/view.h"

namespace sofie {

// Rows `first` to `first + count` of `rows`, of a model's inputs or outputs. Inputs without rows
// are the same in all slices.
std::vector<TensorView> SliceOf(const ModelInfo& info, std::span<const TensorView> inputs,
                                int64_t rows, int64_t first, int64_t count);
std::vector<MutableTensorView> SliceOf(std::span<const MutableTensorView> outputs, int64_t rows,
                                       int64_t first, int64_t count);

// The rows of a slice such that `rows` are cut into as few slices as can be, of nearly equal size;
// 0 if `fits` says of not even one row that it fits. Of fewer rows `fits` says no less often yes.
template <class Fits>
int64_t RowsOfSlice(int64_t rows, const Fits& fits) {
  int64_t most = 0;  // fits
  for (int64_t too_many = rows + 1; too_many - most > 1;) {
    const int64_t middle = most + (too_many - most) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  if (most == 0) return 0;
  const int64_t slices = (rows + most - 1) / most;
  const int64_t even = (rows + slices - 1) / slices;
  return fits(even) ? even : most;
}

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SLICES_H_
