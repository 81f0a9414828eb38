// Division of 32-bit indices by a number known at launch, without a division instruction.
#ifndef SOFIE_RUNTIME_KERNELS_FAST_DIV_H_
#define SOFIE_RUNTIME_KERNELS_FAST_DIV_H_

#include <cstdint>

#include "sofie/runtime/alpaka/version.h"

namespace sofie::kernels {

// n / d for 0 ≤ n < 2^31 and 1 ≤ d < 2^31 as a multiplication, an addition and a shift.
// Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
class FastDiv {
 public:
  FastDiv() = default;
  explicit FastDiv(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    const uint64_t excess = (uint64_t{1} << shift_) - divisor;
    multiplier_ = static_cast<uint32_t>((excess << 32) / divisor + 1);
  }

  ALPAKA_FN_HOST_ACC uint32_t divisor() const { return divisor_; }

  ALPAKA_FN_HOST_ACC uint32_t Divide(uint32_t n) const {
#if defined(__CUDA_ARCH__)
    const uint32_t high = __umulhi(n, multiplier_);
#else
    const uint32_t high = static_cast<uint32_t>((uint64_t{n} * multiplier_) >> 32);
#endif
    return (high + n) >> shift_;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_FAST_DIV_H_
