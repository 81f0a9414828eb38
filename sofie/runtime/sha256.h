// SHA-256 (FIPS 180-4), for the checksum of weights.
#ifndef SOFIE_RUNTIME_SHA256_H_
#define SOFIE_RUNTIME_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sofie {

std::array<uint8_t, 32> Sha256(std::span<const std::byte> data);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SHA256_H_
