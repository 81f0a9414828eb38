// How the threads of a GPU share a reduction. The generator chooses by layout class, never by size.
#ifndef SOFIE_RUNTIME_KERNELS_POLICY_H_
#define SOFIE_RUNTIME_KERNELS_POLICY_H_

#include <cstdint>

namespace sofie::kernels {

// kReduced: neighbouring threads walk the reduced axes; the last reduced axis is contiguous.
// kKept: neighbouring threads take neighbouring outputs; the last kept axis is contiguous.
enum class Along : uint8_t { kReduced, kKept };

// `Lanes` threads share one output: a power of two, up to 256 (kReduced) or 32 (kKept). CPUs
// take from it the axis, and whether it is one thread's work.
template <Along kAlong_, int kLanes_>
struct ReducePolicy {
  static constexpr Along kAlong = kAlong_;
  static constexpr int kLanes = kLanes_;
  static_assert(kLanes > 0 && (kLanes & (kLanes - 1)) == 0, "Lanes must be a power of two");
  static_assert(kLanes <= (kAlong == Along::kReduced ? 256 : 32), "too many lanes");
};

// What follows the reduction: kStore writes one result per output, body.Store(kept…, acc); kMap
// visits each element of the row again, body.Store(kept…, reduced…, acc).
enum class Finish : uint8_t { kStore, kMap };

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_POLICY_H_
