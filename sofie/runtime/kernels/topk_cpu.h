// TopK on the CPU.
#ifndef SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_
#define SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/topk_key.h"

namespace sofie::kernels {

// The largest k that the buffer of the best entries serves; beyond it, a heap in the outputs.
inline constexpr int64_t kTopKBuffer = 32;

// The units are rows.
template <class T>
struct TopKOnCpu {
  using Key = TopKKey<T>;
  // The key and, below it, the complement of the index: one comparison decides. An index takes as
  // many bits as the key; 2^32 elements and more along the axis need 64 bits for it.
  __extension__ using Wide = unsigned __int128;
  template <class Index>
  using Entry = std::conditional_t<sizeof(typename Key::Type) + sizeof(Index) <= 8, uint64_t, Wide>;

  TopKArgs<T> args;

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const TopKArgs<T> a = args;
    const bool small = a.axis <= int64_t{UINT32_MAX};
    for (int64_t row = begin; row < end; ++row) {
      const int64_t o = row / a.inner;
      const int64_t i = row % a.inner;
      const T* const x = a.x + o * a.axis * a.inner + i;
      T* const values = a.values == nullptr ? nullptr : a.values + o * a.k * a.inner + i;
      int64_t* const indices = a.indices == nullptr ? nullptr : a.indices + o * a.k * a.inner + i;
      if (a.k > kTopKBuffer) {
        Heap(x, values, indices);
      } else if (small) {
        Buffer<uint32_t>(x, values, indices);
      } else {
        Buffer<uint64_t>(x, values, indices);
      }
    }
  }

 private:
  template <class Index>
  static Entry<Index> MakeEntry(typename Key::Type key, int64_t index) {
    return (Entry<Index>{key} << (8 * sizeof(Index))) |
           static_cast<Index>(~static_cast<Index>(index));
  }

  // Insertion into a sorted buffer of the k best so far.
  template <class Index>
  void Buffer(const T* x, T* values, int64_t* indices) const {
    using E = Entry<Index>;
    const int64_t k = args.k;
    const int64_t stride = args.inner;
    const bool largest = args.largest;
    E best[kTopKBuffer];
    int64_t filled = 0;
    int64_t j = 0;
    for (; filled < k; ++j) {
      Insert(best, filled++, MakeEntry<Index>(Key::Of(x[j * stride], largest), j));
    }
    for (; j < args.axis; ++j) {
      const E entry = MakeEntry<Index>(Key::Of(x[j * stride], largest), j);
      if (entry > best[k - 1]) Insert(best, k - 1, entry);
    }
    for (int64_t r = 0; r < k; ++r) {
      const int64_t index = static_cast<int64_t>(static_cast<Index>(~static_cast<Index>(best[r])));
      if (values != nullptr) values[r * stride] = x[index * stride];
      if (indices != nullptr) indices[r * stride] = index;
    }
  }

  // Puts an entry into its place among best[0, at), moving the last one or more to the right.
  template <class E>
  static void Insert(E* best, int64_t at, E entry) {
    for (; at > 0 && best[at - 1] < entry; --at) best[at] = best[at - 1];
    best[at] = entry;
  }

  // A heap of the k best so far with the worst at its root, kept in the outputs, so that no k needs
  // scratch memory; sorted in place at the end. Without indices equal values are the same to it.
  void Heap(const T* x, T* values, int64_t* indices) const {
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
      return {x[index * stride], index};
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
    for (int64_t j = 0; j < k; ++j) set(j, {x[j * stride], j});
    for (int64_t at = k / 2; at-- > 0;) sift_down(at, k, get(at));
    for (int64_t j = k; j < args.axis; ++j) {
      const Item item{x[j * stride], j};
      if (worse(get(0), item)) sift_down(0, k, item);
    }
    for (int64_t size = k - 1; size > 0; --size) {
      const Item worst = get(0);
      const Item last = get(size);
      set(size, worst);
      sift_down(0, size, last);
    }
    if (indices != nullptr && values != nullptr) {
      for (int64_t r = 0; r < k; ++r) values[r * stride] = x[indices[r * stride] * stride];
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_TOPK_CPU_H_
