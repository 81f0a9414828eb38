// TopK on the CPU.
#ifndef SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "sofie/runtime/kernels/topk_key.h"

namespace sofie::kernels {

// The largest k that the buffers of the best entries serve; beyond it, a heap in the outputs.
inline constexpr int64_t kTopKBuffer = 32;

// The longest axis whose elements are ranked by counting, and the largest k for which that is
// slower than to keep the best (Zen 4: 110 elements in 0.61 us, where keeping 17 takes 0.97 us).
inline constexpr int64_t kTopKRanked = 256;
inline constexpr int64_t kTopKFew = 11;

// The units are rows.
template <class T, class Body, size_t K>
struct TopKOnCpu {
  using Key = TopKKey<T>;
  using Row = TopKRow<T, Body, int64_t, K>;

  Body body;
  IndexSpace<int64_t, K> kept;
  TopKArgs<T> args;

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const TopKArgs<T> a = args;
    for (int64_t row = begin; row < end; ++row) {
      const Row x(args, body, kept.At(row), row);
      T* const values = a.values == nullptr ? nullptr : a.values + x.output;
      int64_t* const indices = a.indices == nullptr ? nullptr : a.indices + x.output;
      if (sizeof(typename Key::Type) == 4 && a.axis <= kTopKRanked && a.k > kTopKFew) {
        ByRank(x, values, indices);
      } else if (a.k > kTopKBuffer) {
        Heap(x, values, indices);
      } else if (sizeof(typename Key::Type) == 4 && a.axis <= int64_t{UINT32_MAX}) {
        InPackedBuffer(x, values, indices);
      } else {
        InWideBuffer(x, values, indices);
      }
    }
  }

 private:
  void Write(const Row& x, int64_t rank, int64_t index, T* values, int64_t* indices) const {
    if (values != nullptr) values[rank * args.inner] = x[index];
    if (indices != nullptr) indices[rank * args.inner] = index;
  }

  // The keys of `count` elements from `first` on, as signed numbers, which vectors can compare.
  void Keys(const Row& x, int64_t first, int64_t count, int32_t* keys) const {
    const bool largest = args.largest;
    for (int64_t j = 0; j < count; ++j) {
      keys[j] =
          static_cast<int32_t>(static_cast<uint32_t>(Key::Of(x[first + j], largest)) ^ 0x80000000u);
    }
  }

  // An element's rank is the number of elements before it. No branch depends on the data.
  void ByRank(const Row& x, T* values, int64_t* indices) const {
    constexpr int64_t kBlock = 32;
    const int64_t axis = args.axis;
    int32_t key[kTopKRanked] = {};
    int32_t order[kTopKRanked];
    Keys(x, 0, axis, key);
    for (int64_t begin = 0; begin < axis; begin += kBlock) {
      const int64_t end = std::min(axis, begin + kBlock);
      int32_t mine[kBlock];
      int32_t rank[kBlock] = {};
      std::copy_n(key + begin, kBlock, mine);
      for (int64_t j = 0; j < begin; ++j) {
        const int32_t other = key[j];
        for (int64_t i = 0; i < kBlock; ++i) rank[i] += other >= mine[i] ? 1 : 0;
      }
      for (int64_t j = begin; j < end; ++j) {
        const int32_t other = key[j];
        const auto place = static_cast<int32_t>(j - begin);
        for (int32_t i = 0; i < kBlock; ++i) {
          rank[i] += (other > mine[i] ? 1 : 0) + ((other == mine[i] ? 1 : 0) & (place < i ? 1 : 0));
        }
      }
      for (int64_t j = end; j < axis; ++j) {
        const int32_t other = key[j];
        for (int64_t i = 0; i < kBlock; ++i) rank[i] += other > mine[i] ? 1 : 0;
      }
      for (int64_t i = begin; i < end; ++i) order[rank[i - begin]] = static_cast<int32_t>(i);
    }
    for (int64_t r = 0; r < args.k; ++r) Write(x, r, order[r], values, indices);
  }

  // The k best so far, sorted: the key and, below it, the complement of the index, as one signed
  // number. Almost every row makes some 2 k insertions at unforeseeable places, so an insertion
  // moves all entries, without branches: each new entry is a maximum and a minimum of old ones.
  void InPackedBuffer(const Row& x, T* values, int64_t* indices) const {
    constexpr int64_t kChunk = 64;
    constexpr int64_t kWidth = 4;
    constexpr int64_t kWorst = std::numeric_limits<int64_t>::min();
    // The first entry stands above all; the last k are the best. Two buffers take turns.
    int64_t buffers[2][kTopKBuffer + 1];
    for (auto& buffer : buffers) {
      std::fill(std::begin(buffer), std::end(buffer), kWorst);
      buffer[0] = std::numeric_limits<int64_t>::max();
    }
    int64_t* best = buffers[0];
    int64_t* next = buffers[1];
    const int64_t k = args.k;
    int64_t bar = kWorst;
    for (int64_t first = 0; first < args.axis; first += kChunk) {
      const int64_t count = std::min(kChunk, args.axis - first);
      int32_t key[kChunk];
      Keys(x, first, count, key);
      for (int64_t j = 0; j < count; ++j) {
        const uint64_t high = static_cast<uint64_t>(static_cast<uint32_t>(key[j])) << 32;
        const auto entry = static_cast<int64_t>(high | ~static_cast<uint32_t>(first + j));
        if (entry <= bar) continue;
        for (int64_t group = 0; group < k; group += kWidth) {
#pragma GCC ivdep
          for (int64_t r = group; r < group + kWidth; ++r) {
            const int64_t lower = entry < best[r] ? entry : best[r];
            next[r + 1] = best[r + 1] > lower ? best[r + 1] : lower;
          }
        }
        std::swap(best, next);
        bar = best[k];
      }
    }
    for (int64_t r = 0; r < k; ++r) {
      Write(x, r, static_cast<int64_t>(~static_cast<uint32_t>(best[r + 1])), values, indices);
    }
  }

  // The same for keys of 64 bits and for axes beyond 2^32, by plain insertion.
  void InWideBuffer(const Row& x, T* values, int64_t* indices) const {
    struct Entry {
      typename Key::Type key;
      int64_t index;
    };
    const int64_t k = args.k;
    Entry best[kTopKBuffer];
    int64_t filled = 0;
    for (int64_t j = 0; j < args.axis; ++j) {
      const Entry entry{Key::Of(x[j], args.largest), j};
      int64_t at = filled;
      if (filled < k) {
        ++filled;
      } else if (entry.key > best[k - 1].key) {
        at = k - 1;
      } else {
        continue;
      }
      for (; at > 0 && best[at - 1].key < entry.key; --at) best[at] = best[at - 1];
      best[at] = entry;
    }
    for (int64_t r = 0; r < k; ++r) Write(x, r, best[r].index, values, indices);
  }

  // A heap of the k best so far with the worst at its root, kept in the outputs, so that no k needs
  // scratch memory; sorted in place at the end. Without indices equal values are the same to it.
  void Heap(const Row& x, T* values, int64_t* indices) const {
    const int64_t k = args.k;
    const int64_t stride = args.inner;
    const bool largest = args.largest;
    struct Item {
      T value;
      int64_t index;
    };
    const auto worse = [&](const Item& a, const Item& b) {
      const auto key_a = Key::Of(a.value, largest);
      const auto key_b = Key::Of(b.value, largest);
      return key_a != key_b ? key_a < key_b : a.index > b.index;
    };
    const auto get = [&](int64_t at) -> Item {
      if (indices == nullptr) return {values[at * stride], 0};
      const int64_t index = indices[at * stride];
      return {x[index], index};
    };
    const auto set = [&](int64_t at, const Item& item) {
      if (indices != nullptr) {
        indices[at * stride] = item.index;
      } else {
        values[at * stride] = item.value;
      }
    };
    const auto sift_down = [&](int64_t at, int64_t size, const Item& item) {
      for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        Item worst = get(child);
        if (child + 1 < size) {
          const Item right = get(child + 1);
          if (worse(right, worst)) {
            worst = right;
            ++child;
          }
        }
        if (!worse(worst, item)) break;
        set(at, worst);
        at = child;
      }
      set(at, item);
    };
    for (int64_t j = 0; j < k; ++j) set(j, {x[j], j});
    for (int64_t at = k / 2; at-- > 0;) sift_down(at, k, get(at));
    for (int64_t j = k; j < args.axis; ++j) {
      const Item item{x[j], j};
      if (worse(get(0), item)) sift_down(0, k, item);
    }
    for (int64_t size = k - 1; size > 0; --size) {
      const Item worst = get(0);
      const Item last = get(size);
      set(size, worst);
      sift_down(0, size, last);
    }
    if (indices != nullptr && values != nullptr) {
      for (int64_t r = 0; r < k; ++r) values[r * stride] = x[indices[r * stride]];
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_
