// Reductions and row normalisations on the CPU. Inner loops run over the contiguous axis and are
// such that the compiler vectorises them.
#ifndef SOFIE_RUNTIME_KERNELS_REDUCE_CPU_H_
#define SOFIE_RUNTIME_KERNELS_REDUCE_CPU_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sofie/runtime/kernels/combine.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/policy.h"

namespace sofie::kernels {

// Calls a body's member with the kept and the reduced indices spread out.
template <class Body, size_t K, size_t R>
auto LoadAt(const Body& body, const std::array<int64_t, K>& kept,
            const std::array<int64_t, R>& reduced) {
  return [&]<size_t... A, size_t... B>(std::index_sequence<A...>, std::index_sequence<B...>) {
    return body.Load(kept[A]..., reduced[B]...);
  }(std::make_index_sequence<K>(), std::make_index_sequence<R>());
}
template <class Body, size_t K, size_t R, class Accumulator>
void StoreAt(const Body& body, const std::array<int64_t, K>& kept,
             const std::array<int64_t, R>& reduced, const Accumulator& accumulator) {
  [&]<size_t... A, size_t... B>(std::index_sequence<A...>, std::index_sequence<B...>) {
    body.Store(kept[A]..., reduced[B]..., accumulator);
  }(std::make_index_sequence<K>(), std::make_index_sequence<R>());
}

// Visits the reduced points: `row(outer, begin, end)` for each run along the last axis. Rank 0 is
// one point.
template <size_t R, class Row>
void ForEachRow(const std::array<int64_t, R>& reduced, const Row& row) {
  if constexpr (R == 0) {
    row(std::array<int64_t, 0>{}, 1);
  } else if constexpr (R == 1) {
    row(std::array<int64_t, 0>{}, reduced[0]);
  } else {
    const std::array<int64_t, R - 1> outer = AllButLast(reduced);
    const int64_t rows = Elements(outer);
    Odometer<R - 1> at(outer, 0);
    for (int64_t i = 0; i < rows; ++i, at.Next()) row(at.index, reduced[R - 1]);
  }
}

// The reduced indices from those before the last and the last.
template <size_t R>
std::array<int64_t, R> Join(const std::array<int64_t, R <= 1 ? 0 : R - 1>& outer, int64_t last) {
  std::array<int64_t, R> index;
  for (size_t axis = 0; axis + 1 < R; ++axis) index[axis] = outer[axis];
  if constexpr (R > 0) index[R - 1] = last;
  return index;
}

// Combines load(index) over all reduced points. Numbers go through several partial results, which
// vectorises and shortens the chain of rounding errors.
template <class Combine, size_t R, class Load>
typename Combine::Accumulator AccumulateRow(const std::array<int64_t, R>& reduced,
                                            const Load& load) {
  using Accumulator = typename Combine::Accumulator;
  const Combine combine;
  Accumulator total = Combine::Identity();
  if constexpr (std::is_arithmetic_v<Accumulator> && !std::is_same_v<Accumulator, bool>) {
    constexpr int64_t kParts = 128 / sizeof(Accumulator);
    if ((R == 0 ? 1 : reduced[R == 0 ? 0 : R - 1]) >= kParts) {
      Accumulator part[kParts];
      for (Accumulator& p : part) p = Combine::Identity();
      ForEachRow(reduced, [&](const auto& outer, int64_t length) {
        int64_t i = 0;
        for (; i + kParts <= length; i += kParts) {
#pragma GCC ivdep
          for (int64_t p = 0; p < kParts; ++p) {
            part[p] = combine(part[p], static_cast<Accumulator>(load(Join<R>(outer, i + p))));
          }
        }
        for (; i < length; ++i) {
          total = combine(total, static_cast<Accumulator>(load(Join<R>(outer, i))));
        }
      });
      for (int64_t width = kParts / 2; width > 0; width /= 2) {
        for (int64_t p = 0; p < width; ++p) part[p] = combine(part[p], part[p + width]);
      }
      return combine(part[0], total);
    }
  }
  ForEachRow(reduced, [&](const auto& outer, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      total = combine(total, static_cast<Accumulator>(load(Join<R>(outer, i))));
    }
  });
  return total;
}

// Reduces one row with any combine. Those with a cheaper form in two passes over numbers use it:
// the row is in the cache.
template <class Combine>
struct RowReducer {
  template <size_t R, class Load>
  static typename Combine::Accumulator Reduce(const std::array<int64_t, R>& reduced,
                                              const Load& load) {
    return AccumulateRow<Combine>(reduced, load);
  }
};

template <class T>
struct RowReducer<MaxSumExp<T>> {
  template <size_t R, class Load>
  static typename MaxSumExp<T>::Accumulator Reduce(const std::array<int64_t, R>& reduced,
                                                   const Load& load) {
    const T max = AccumulateRow<Max<T>>(reduced, load);
    const T sum = AccumulateRow<Sum<T>>(
        reduced, [&](const auto& index) { return Exp<T>(load(index) - max); });
    return {max, sum};
  }
};

template <class T>
struct RowReducer<MeanVariance<T>> {
  template <size_t R, class Load>
  static typename MeanVariance<T>::Accumulator Reduce(const std::array<int64_t, R>& reduced,
                                                      const Load& load) {
    const T count = static_cast<T>(Elements(reduced));
    if (count == T{0}) return MeanVariance<T>::Identity();
    T mean = AccumulateRow<Sum<T>>(reduced, load) / count;
    // The deviations from it are small: their mean corrects the rounding of the first sum.
    mean += AccumulateRow<Sum<T>>(reduced, [&](const auto& index) { return load(index) - mean; }) /
            count;
    const T m2 = AccumulateRow<Sum<T>>(reduced, [&](const auto& index) {
      const T deviation = load(index) - mean;
      return deviation * deviation;
    });
    return {count, mean, m2};
  }
};

// Along::kReduced. The units are outputs.
template <class Body, size_t K, size_t R, Finish kFinish>
struct RowsOnCpu {
  using Combine = typename Body::Combine;

  Body body;
  std::array<int64_t, K> kept;
  std::array<int64_t, R> reduced;

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const Body local = body;  // A copy that no store in the body can alias.
    Odometer<K> at(kept, begin);
    for (int64_t output = begin; output < end; ++output, at.Next()) {
      const std::array<int64_t, K> index = at.index;
      const auto accumulator = RowReducer<Combine>::Reduce(
          reduced, [&](const std::array<int64_t, R>& r) { return LoadAt(local, index, r); });
      if constexpr (kFinish == Finish::kStore) {
        StoreAt(local, index, std::array<int64_t, 0>{}, accumulator);
      } else {
        ForEachRow(reduced, [&](const auto& outer, int64_t length) {
#pragma GCC ivdep
          for (int64_t i = 0; i < length; ++i) {
            StoreAt(local, index, Join<R>(outer, i), accumulator);
          }
        });
      }
    }
  }
};

// Combines load(j, index) over all reduced points into accumulators[j], for j in [0, width).
template <class Combine, size_t R, class Load>
void AccumulateColumns(const std::array<int64_t, R>& reduced, int64_t width,
                       typename Combine::Accumulator* accumulators, const Load& load) {
  using Accumulator = typename Combine::Accumulator;
  const Combine combine;
  for (int64_t j = 0; j < width; ++j) accumulators[j] = Combine::Identity();
  const int64_t points = Elements(reduced);
  Odometer<R> at(reduced, 0);
  for (int64_t point = 0; point < points; ++point, at.Next()) {
    const std::array<int64_t, R> index = at.index;
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      accumulators[j] = combine(accumulators[j], static_cast<Accumulator>(load(j, index)));
    }
  }
}

template <class Combine>
struct ColumnReducer {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, int64_t width,
                     typename Combine::Accumulator* accumulators, const Load& load) {
    AccumulateColumns<Combine>(reduced, width, accumulators, load);
  }
};

// Outputs that a CPU reduces side by side.
inline constexpr int64_t kColumns = 64;

template <class T>
struct ColumnReducer<MaxSumExp<T>> {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, int64_t width,
                     typename MaxSumExp<T>::Accumulator* accumulators, const Load& load) {
    T max[kColumns];
    T sum[kColumns];
    AccumulateColumns<Max<T>>(reduced, width, max, load);
    AccumulateColumns<Sum<T>>(reduced, width, sum, [&](int64_t j, const auto& index) {
      return Exp<T>(load(j, index) - max[j]);
    });
    for (int64_t j = 0; j < width; ++j) accumulators[j] = {max[j], sum[j]};
  }
};

template <class T>
struct ColumnReducer<MeanVariance<T>> {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, int64_t width,
                     typename MeanVariance<T>::Accumulator* accumulators, const Load& load) {
    const T count = static_cast<T>(Elements(reduced));
    T mean[kColumns];
    T m2[kColumns];
    AccumulateColumns<Sum<T>>(reduced, width, mean, load);
    for (int64_t j = 0; j < width; ++j) mean[j] = count == T{0} ? T{0} : mean[j] / count;
    // As for a row: corrects the rounding of the first sum.
    T rest[kColumns];
    AccumulateColumns<Sum<T>>(reduced, width, rest, [&](int64_t j, const auto& index) {
      return load(j, index) - mean[j];
    });
    for (int64_t j = 0; j < width; ++j) mean[j] += count == T{0} ? T{0} : rest[j] / count;
    AccumulateColumns<Sum<T>>(reduced, width, m2, [&](int64_t j, const auto& index) {
      const T deviation = load(j, index) - mean[j];
      return deviation * deviation;
    });
    for (int64_t j = 0; j < width; ++j) accumulators[j] = {count, mean[j], m2[j]};
  }
};

// Along::kKept. The units are tiles of kColumns outputs along the last kept axis.
template <class Body, size_t K, size_t R, Finish kFinish>
struct ColumnsOnCpu {
  using Combine = typename Body::Combine;
  using Accumulator = typename Combine::Accumulator;

  Body body;
  std::array<int64_t, K> kept;
  std::array<int64_t, R> reduced;

  static int64_t Tiles(int64_t columns) { return (columns + kColumns - 1) / kColumns; }
  int64_t units() const { return Elements(AllButLast(kept)) * Tiles(kept[K - 1]); }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const Body local = body;  // A copy that no store in the body can alias.
    std::array<int64_t, K> tiles = kept;
    tiles[K - 1] = Tiles(kept[K - 1]);
    Odometer<K> at(tiles, begin);
    for (int64_t unit = begin; unit < end; ++unit, at.Next()) {
      const std::array<int64_t, K> index = at.index;
      const int64_t first = index[K - 1] * kColumns;
      const int64_t width = std::min(kColumns, kept[K - 1] - first);
      const auto column = [&](int64_t j) {
        std::array<int64_t, K> o = index;
        o[K - 1] = first + j;
        return o;
      };
      Accumulator accumulators[kColumns];
      ColumnReducer<Combine>::Reduce(
          reduced, width, accumulators,
          [&](int64_t j, const std::array<int64_t, R>& r) { return LoadAt(local, column(j), r); });
      if constexpr (kFinish == Finish::kStore) {
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) {
          StoreAt(local, column(j), std::array<int64_t, 0>{}, accumulators[j]);
        }
      } else {
        const int64_t points = Elements(reduced);
        Odometer<R> r(reduced, 0);
        for (int64_t point = 0; point < points; ++point, r.Next()) {
          const std::array<int64_t, R> reduced_index = r.index;
#pragma GCC ivdep
          for (int64_t j = 0; j < width; ++j) {
            StoreAt(local, column(j), reduced_index, accumulators[j]);
          }
        }
      }
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_REDUCE_CPU_H_
