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
[[gnu::always_inline]] inline void ForEachRow(const std::array<int64_t, R>& reduced,
                                              const Row& row) {
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

// Combines the upper half of some parts into the lower one, and so on until `kLeft` are left.
template <int64_t kParts, int64_t kLeft, class Combine, class T>
[[gnu::always_inline]] inline void CombineHalves(T* part, const Combine& combine) {
  if constexpr (kParts > kLeft) {
#pragma GCC ivdep
    for (int64_t p = 0; p < kParts / 2; ++p) part[p] = combine(part[p], part[p + kParts / 2]);
    CombineHalves<kParts / 2, kLeft>(part, combine);
  }
}

// Combines load(index) over all reduced points. Numbers go through several partial results, which
// vectorises and shortens the chain of rounding errors. Inlined, for rows are often short.
template <class Combine, size_t R, class Load>
[[gnu::always_inline]] inline typename Combine::Accumulator AccumulateRow(
    const std::array<int64_t, R>& reduced, const Load& load) {
  using Accumulator = typename Combine::Accumulator;
  const Combine combine;
  Accumulator total = Combine::Identity();
  if constexpr (std::is_arithmetic_v<Accumulator> && !std::is_same_v<Accumulator, bool>) {
    // As many as four of AVX2's vectors hold, and for what is left of a row as many as half of one.
    constexpr int64_t kParts = 128 / sizeof(Accumulator);
    constexpr int64_t kFew = 16 / sizeof(Accumulator);
    if ((R == 0 ? 1 : reduced[R == 0 ? 0 : R - 1]) >= kParts && Elements(reduced) > 0) {
      Accumulator part[kParts];
      Accumulator few[kFew];
      for (Accumulator& one : few) one = Combine::Identity();
      bool first = true;
      ForEachRow(reduced, [&](const auto& outer, int64_t length) {
        const auto element = [&](int64_t i) {
          return static_cast<Accumulator>(load(Join<R>(outer, i)));
        };
        int64_t i = 0;
        if (first) {
#pragma GCC ivdep
          for (int64_t p = 0; p < kParts; ++p) part[p] = combine(Combine::Identity(), element(p));
          i = kParts;
          first = false;
        }
        for (; i + kParts <= length; i += kParts) {
#pragma GCC ivdep
          for (int64_t p = 0; p < kParts; ++p) part[p] = combine(part[p], element(i + p));
        }
        for (; i + kFew <= length; i += kFew) {
#pragma GCC ivdep
          for (int64_t p = 0; p < kFew; ++p) few[p] = combine(few[p], element(i + p));
        }
        for (; i < length; ++i) total = combine(total, element(i));
      });
      CombineHalves<kParts, kFew>(part, combine);
#pragma GCC ivdep
      for (int64_t p = 0; p < kFew; ++p) few[p] = combine(part[p], few[p]);
      CombineHalves<kFew, 1>(few, combine);
      return combine(few[0], total);
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
        reduced, [&](const auto& index) { return ExpOfNonPositive<T>(load(index) - max); });
    return {max, sum};
  }
};

// Where the extreme is found: two searches that the compiler vectorises. `Extreme` is Max or Min.
template <class Extreme>
struct ArgReducer {
  template <size_t R, class Load>
  static auto Reduce(const std::array<int64_t, R>& reduced, const Load& load) {
    constexpr int64_t kNowhere = Min<int64_t>::Identity();
    const auto best =
        AccumulateRow<Extreme>(reduced, [&](const auto& index) { return load(index).value; });
    const int64_t first = AccumulateRow<Min<int64_t>>(reduced, [&](const auto& index) {
      const auto found = load(index);
      return SameKey(found.value, best) ? found.index : kNowhere;
    });
    return ValueIndex<typename Extreme::Accumulator>{best, first};
  }
};
template <class T>
struct RowReducer<ArgMax<T>> : ArgReducer<Max<T>> {};
template <class T>
struct RowReducer<ArgMin<T>> : ArgReducer<Min<T>> {};

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

// Outputs that a CPU reduces side by side.
inline constexpr int64_t kColumns = 64;

// Of the outputs, `rows` steps of the last kept axis but one times `columns` of the last.
struct ColumnTile {
  int64_t rows;
  int64_t columns;

  // Calls visit(row, column, row * columns + column).
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
      for (int64_t column = 0; column < columns; ++column) {
        visit(row, column, row * columns + column);
      }
    }
  }
};

// Combines load(row, column, index) over all reduced points into the accumulator of each output.
template <class Combine, size_t R, class Load>
void AccumulateColumns(const std::array<int64_t, R>& reduced, const ColumnTile tile,
                       typename Combine::Accumulator* accumulators, const Load& load) {
  using Accumulator = typename Combine::Accumulator;
  const Combine combine;
  std::fill_n(accumulators, tile.rows * tile.columns, Combine::Identity());
  ForEachPoint(reduced, 0, Elements(reduced), [&](auto... index) {
    tile.ForEach([&](int64_t row, int64_t column, int64_t j) {
      accumulators[j] =
          combine(accumulators[j],
                  static_cast<Accumulator>(load(row, column, std::array<int64_t, R>{index...})));
    });
  });
}

template <class Combine>
struct ColumnReducer {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, const ColumnTile tile,
                     typename Combine::Accumulator* accumulators, const Load& load) {
    AccumulateColumns<Combine>(reduced, tile, accumulators, load);
  }
};

template <class T>
struct ColumnReducer<MaxSumExp<T>> {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, const ColumnTile tile,
                     typename MaxSumExp<T>::Accumulator* accumulators, const Load& load) {
    T max[kColumns];
    T sum[kColumns];
    AccumulateColumns<Max<T>>(reduced, tile, max, load);
    const auto exp = [&](int64_t row, int64_t column, const auto& index) {
      return ExpOfNonPositive<T>(load(row, column, index) - max[row * tile.columns + column]);
    };
    AccumulateColumns<Sum<T>>(reduced, tile, sum, exp);
    for (int64_t j = 0; j < tile.rows * tile.columns; ++j) accumulators[j] = {max[j], sum[j]};
  }
};

template <class T>
struct ColumnReducer<MeanVariance<T>> {
  template <size_t R, class Load>
  static void Reduce(const std::array<int64_t, R>& reduced, const ColumnTile tile,
                     typename MeanVariance<T>::Accumulator* accumulators, const Load& load) {
    const T count = static_cast<T>(Elements(reduced));
    const int64_t outputs = tile.rows * tile.columns;
    T mean[kColumns];
    T m2[kColumns];
    const auto deviation = [&](int64_t row, int64_t column, const auto& index) {
      return load(row, column, index) - mean[row * tile.columns + column];
    };
    AccumulateColumns<Sum<T>>(reduced, tile, mean, load);
    for (int64_t j = 0; j < outputs; ++j) mean[j] = count == T{0} ? T{0} : mean[j] / count;
    // As for a row: corrects the rounding of the first sum.
    T rest[kColumns];
    AccumulateColumns<Sum<T>>(reduced, tile, rest, deviation);
    for (int64_t j = 0; j < outputs; ++j) mean[j] += count == T{0} ? T{0} : rest[j] / count;
    const auto square = [&](int64_t row, int64_t column, const auto& index) {
      const T value = deviation(row, column, index);
      return value * value;
    };
    AccumulateColumns<Sum<T>>(reduced, tile, m2, square);
    for (int64_t j = 0; j < outputs; ++j) accumulators[j] = {count, mean[j], m2[j]};
  }
};

// Along::kKept. The units are tiles of up to kColumns outputs: along the last kept axis and, if
// that is short, along the one before it too.
template <class Body, size_t K, size_t R, Finish kFinish>
struct ColumnsOnCpu {
  using Combine = typename Body::Combine;
  using Accumulator = typename Combine::Accumulator;

  Body body;
  std::array<int64_t, K> kept;
  std::array<int64_t, R> reduced;

  static int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
  int64_t rows() const {
    return std::max<int64_t>(kColumns / std::max<int64_t>(kept[K - 1], 1), 1);
  }
  std::array<int64_t, K> tiles() const {
    std::array<int64_t, K> result = kept;
    result[K - 1] = DivideUp(kept[K - 1], kColumns);
    if constexpr (K > 1) result[K - 2] = DivideUp(kept[K - 2], rows());
    return result;
  }
  int64_t units() const { return Elements(tiles()); }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const Body local = body;  // A copy that no store in the body can alias.
    Odometer<K> at(tiles(), begin);
    for (int64_t unit = begin; unit < end; ++unit, at.Next()) {
      std::array<int64_t, K> first = at.index;
      first[K - 1] *= kColumns;
      ColumnTile tile{1, std::min(kColumns, kept[K - 1] - first[K - 1])};
      if constexpr (K > 1) {
        first[K - 2] *= rows();
        tile.rows = std::min(rows(), kept[K - 2] - first[K - 2]);
      }
      RunTile(local, first, tile);
    }
  }

 private:
  void RunTile(const Body& local, const std::array<int64_t, K> first, const ColumnTile tile) const {
    const auto output = [first](int64_t row, int64_t column) {
      std::array<int64_t, K> index = first;
      if constexpr (K > 1) index[K - 2] += row;
      index[K - 1] += column;
      return index;
    };
    const auto load = [&](int64_t row, int64_t column, const std::array<int64_t, R>& index) {
      return LoadAt(local, output(row, column), index);
    };
    Accumulator accumulators[kColumns];
    ColumnReducer<Combine>::Reduce(reduced, tile, accumulators, load);
    if constexpr (kFinish == Finish::kStore) {
      tile.ForEach([&](int64_t row, int64_t column, int64_t j) {
        StoreAt(local, output(row, column), std::array<int64_t, 0>{}, accumulators[j]);
      });
    } else {
      ForEachPoint(reduced, 0, Elements(reduced), [&](auto... index) {
        tile.ForEach([&](int64_t row, int64_t column, int64_t j) {
          StoreAt(local, output(row, column), std::array<int64_t, R>{index...}, accumulators[j]);
        });
      });
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_REDUCE_CPU_H_
