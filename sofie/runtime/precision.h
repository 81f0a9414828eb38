// How products of float matrices are computed.
#ifndef SOFIE_RUNTIME_PRECISION_H_
#define SOFIE_RUNTIME_PRECISION_H_

#include <cstdint>

namespace sofie {

// kFloat32 is at least as accurate as float arithmetic. In the others a GPU may round the factors:
// kTf32 keeps 11 significant bits or more, kBfloat16 8, kFloat16 11 of numbers up to 65504 (larger
// ones become infinite). Sums are float in all of them. CPUs always use float arithmetic.
enum class Precision : uint8_t { kFloat32, kTf32, kBfloat16, kFloat16 };

}  // namespace sofie

#endif  // SOFIE_RUNTIME_PRECISION_H_
