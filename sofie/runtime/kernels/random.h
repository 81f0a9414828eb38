// Random numbers by counting: each is a function of a seed and of where it stands, so that any
// thread of any device computes any of them, in any order.
//
// Philox4x32-10 of Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3
// (SC 2011, https://doi.org/10.1145/2063384.2063405).
#ifndef SOFIE_RUNTIME_KERNELS_RANDOM_H_
#define SOFIE_RUNTIME_KERNELS_RANDOM_H_

#include <cmath>
#include <cstdint>

#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

struct RandomBits {
  uint32_t word[4];
};

// 128 random bits. `index` counts the numbers of a stream, `stream` the streams of a run and `run`
// the runs of a session, of which the low 32 bits count.
SOFIE_MATH_FN RandomBits Philox(uint64_t seed, uint64_t run, uint32_t stream, uint64_t index) {
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  RandomBits x{{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream,
                static_cast<uint32_t>(run)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * x.word[2];
    x = {{static_cast<uint32_t>(b >> 32) ^ x.word[1] ^ key[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ x.word[3] ^ key[1], static_cast<uint32_t>(a)}};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return x;
}

// 24 or 53 bits as a number in [0, 1).
SOFIE_MATH_FN float UnitFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
SOFIE_MATH_FN double UnitDouble(uint32_t high, uint32_t low) {
  return (static_cast<double>(high >> 5) * 0x1p26 + static_cast<double>(low >> 6)) * 0x1p-53;
}

// Uniform in [0, 1).
SOFIE_MATH_FN float UniformFloat(uint64_t seed, uint64_t run, uint32_t stream, uint64_t index) {
  return UnitFloat(Philox(seed, run, stream, index).word[0]);
}
SOFIE_MATH_FN double UniformDouble(uint64_t seed, uint64_t run, uint32_t stream, uint64_t index) {
  const RandomBits bits = Philox(seed, run, stream, index);
  return UnitDouble(bits.word[0], bits.word[1]);
}

// Standard normal, by Box and Muller. The logarithm's argument is in (0, 1].
SOFIE_LIBM_FN float NormalFloat(uint64_t seed, uint64_t run, uint32_t stream, uint64_t index) {
  const RandomBits bits = Philox(seed, run, stream, index);
  const float radius = std::sqrt(-2.0f * std::log(UnitFloat(bits.word[0]) + 0x1p-24f));
  return radius * std::cos(6.28318530717958647693f * UnitFloat(bits.word[1]));
}
SOFIE_LIBM_FN double NormalDouble(uint64_t seed, uint64_t run, uint32_t stream, uint64_t index) {
  const RandomBits bits = Philox(seed, run, stream, index);
  const double distance = UnitDouble(bits.word[0], bits.word[1]) + 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(distance));
  return radius * std::cos(6.28318530717958647693 * UnitDouble(bits.word[2], bits.word[3]));
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_RANDOM_H_
