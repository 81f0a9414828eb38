// Packs buffers by lifetime into one block of memory.
#ifndef SOFIE_RUNTIME_ARENA_H_
#define SOFIE_RUNTIME_ARENA_H_

#include <cstdint>
#include <span>
#include <vector>

namespace sofie {

// Alignment in bytes of every buffer in an arena.
inline constexpr int64_t kArenaAlignment = 256;

constexpr int64_t AlignUp(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// A buffer that is live in steps [first_step, last_step]. 0 bytes need no place.
struct ArenaRequest {
  int64_t bytes = 0;
  int32_t first_step = 0;
  int32_t last_step = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one for each request; 0 where it has 0 bytes
  int64_t bytes = 0;             // the whole block, a multiple of kArenaAlignment
};

// Offsets such that no two requests whose lifetimes share a step overlap. Largest first, each into
// the tightest gap between those already placed that are live with it, else on top of them.
// Deterministic: equal sizes go in the order of the requests.
ArenaLayout PackArena(std::span<const ArenaRequest> requests);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_ARENA_H_
