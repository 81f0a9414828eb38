#include "sofie/runtime/arena.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace sofie {
namespace {

bool LiveTogether(const ArenaRequest& a, const ArenaRequest& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

}  // namespace

ArenaLayout PackArena(std::span<const ArenaRequest> requests) {
  std::vector<size_t> by_size(requests.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });

  ArenaLayout layout;
  layout.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;  // by offset
  placed.reserve(requests.size());
  for (size_t index : by_size) {
    const int64_t bytes = AlignUp(requests[index].bytes);
    if (bytes == 0) break;  // sorted: all that follow are empty too
    int64_t best = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t top = 0;
    for (size_t other : placed) {
      if (!LiveTogether(requests[index], requests[other])) continue;
      const int64_t gap = layout.offsets[other] - top;
      if (gap >= bytes && gap < best_gap) {
        best = top;
        best_gap = gap;
      }
      top = std::max(top, layout.offsets[other] + AlignUp(requests[other].bytes));
    }
    const int64_t offset = best >= 0 ? best : top;
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), offset,
                      [&](int64_t value, size_t other) { return value < layout.offsets[other]; }),
                  index);
  }
  return layout;
}

}  // namespace sofie
