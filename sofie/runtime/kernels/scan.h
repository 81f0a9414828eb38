// What a scan is told: running sums or products along an axis.
#ifndef SOFIE_RUNTIME_KERNELS_SCAN_H_
#define SOFIE_RUNTIME_KERNELS_SCAN_H_

#include <cstdint>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/combine.h"

namespace sofie::kernels {

// out[o, j, i] combines x[o, k, i] over k ≤ j, or k < j if exclusive; over k ≥ j, k > j if reverse.
template <class T>
struct ScanArgs {
  const T* x = nullptr;
  T* out = nullptr;
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
  bool product = false;
  bool exclusive = false;
  bool reverse = false;

  // Where element `step` of a line is, counted in the direction of the scan.
  ALPAKA_FN_HOST_ACC int64_t At(int64_t line, int64_t step) const {
    const int64_t o = inner == 1 ? line : line / inner;
    const int64_t i = line - o * inner;
    return (o * axis + (reverse ? axis - 1 - step : step)) * inner + i;
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_SCAN_H_
