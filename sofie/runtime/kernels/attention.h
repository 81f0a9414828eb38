// What an attention kernel is told, and how its work is cut up.
//
// A body says what is attended to; it has
//   using Number                       float or double, what is computed in
//   kDepth, kValueDepth                channels of queries and keys, and of values
//   kPacked                            sequences lie one after another, each of its own length
//   kHasBias, kHasSoftCap, kHasSums    what else there is
//   kMasks                             whether a bias of -inf hides a key, whatever its score is,
//   and
//                                      a row that sees no key gives 0; else both give NaN
//   Query(b, h, row, c), Key(b, g, key, c), Value(b, g, key, c): elements, h and g being heads of
//     queries and of keys
//   Bias(b, h, row, key)               what is added to a score, if kHasBias
//   FirstRow(b), EndRow(b)             the rows of a sequence, if kPacked
//   FirstKey(b, row), EndKey(b, row)   the keys that a row sees; neither falls from row to row
//   Store(b, h, row, c, mean) and, if kHasSums, StoreSum(b, h, row, logarithm)
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

// Rows and keys are those of a sequence at the most, or of all sequences if they are packed. As
// many neighbouring heads share keys and values as `key_heads` divides `heads` into. Scores are
// multiplied by `scale`; those beyond `soft_cap`, if there is one, become it.
struct AttentionArgs {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t rows = 0;
  int64_t keys = 0;
  double scale = 1;
  double soft_cap = 0;
};

// Query rows [begin, end) of a sequence, which may be none. Rows that belong to no sequence, as the
// last ones of a packed batch may, see no key.
template <class I>
struct AttentionRows {
  I sequence = 0;
  I begin = 0;
  I end = 0;
  bool belongs = true;
};

// The tiles of `kRows` rows that cover all sequences, whatever their lengths are.
template <int kRows, class Body>
int64_t AttentionTiles(const AttentionArgs& args) {
  if constexpr (Body::kPacked) {
    // Each sequence, and what is behind the last one, may end with a tile that is not full.
    return args.rows / kRows + args.batch + 1;
  } else {
    return args.batch * ((args.rows + kRows - 1) / kRows);
  }
}

// Which rows a tile has. In a packed batch sequence b has tiles from FirstRow(b) / kRows + b on:
// that leaves it enough of them, grows with b, and needs no table.
template <int kRows, class I, class Body>
ALPAKA_FN_ACC ALPAKA_FN_INLINE AttentionRows<I> RowsOfTile(const Body& body,
                                                           const AttentionArgs& args, I tile) {
  AttentionRows<I> rows;
  const auto all = static_cast<I>(args.rows);
  if constexpr (Body::kPacked) {
    const auto batch = static_cast<I>(args.batch);
    const auto row = [&](I b) {
      return b < batch ? body.FirstRow(b) : (b == 0 ? I{0} : body.EndRow(b - 1));
    };
    I low = 0;
    I high = batch + 1;
    while (high - low > 1) {
      const I middle = low + (high - low) / 2;
      if (row(middle) / kRows + middle <= tile) {
        low = middle;
      } else {
        high = middle;
      }
    }
    rows.sequence = low;
    rows.belongs = low < batch;
    const I first = row(low);
    const I end = rows.belongs ? body.EndRow(low) : all;
    rows.begin = first + (tile - (first / kRows + low)) * kRows;
    rows.end = end - rows.begin < kRows ? end : rows.begin + kRows;
    if (rows.begin < first) rows.end = rows.begin;
  } else {
    const I tiles = (all + kRows - 1) / kRows;
    rows.sequence = tile / tiles;
    rows.begin = (tile - rows.sequence * tiles) * kRows;
    rows.end = all - rows.begin < kRows ? all : rows.begin + kRows;
  }
  return rows;
}

// The keys that any of some rows sees, or all of them see.
template <class I>
struct AttentionKeys {
  I begin = 0;
  I end = 0;
};

// A score from a product of a query and a key, but for its bias.
template <class Body>
ALPAKA_FN_ACC ALPAKA_FN_INLINE typename Body::Number Score(typename Body::Number product,
                                                           typename Body::Number scale,
                                                           typename Body::Number soft_cap) {
  product *= scale;
  if constexpr (Body::kHasSoftCap) product = soft_cap * std::tanh(product / soft_cap);
  return product;
}

// A score with its bias.
template <class Body>
ALPAKA_FN_ACC ALPAKA_FN_INLINE typename Body::Number Biased(typename Body::Number score,
                                                            typename Body::Number bias) {
  using T = typename Body::Number;
  if (Body::kMasks && bias == -std::numeric_limits<T>::infinity()) return bias;
  return score + bias;
}

// The larger of two scores. NaN is passed over: it comes back with its exponential.
template <class T>
ALPAKA_FN_ACC ALPAKA_FN_INLINE T LargerScore(T a, T b) {
  return b > a ? b : a;
}

// What is subtracted from the scores of a row: their maximum, or anything where all are -inf.
template <class T>
ALPAKA_FN_ACC ALPAKA_FN_INLINE T ScoreShift(T maximum) {
  return maximum == -std::numeric_limits<T>::infinity() ? T{0} : maximum;
}

// The mean from a sum weighted with exponentials, and the sum of those.
template <class Body>
ALPAKA_FN_ACC ALPAKA_FN_INLINE typename Body::Number WeightedMean(typename Body::Number weighted,
                                                                  typename Body::Number sum) {
  using T = typename Body::Number;
  if (sum == T{0}) return Body::kMasks ? T{0} : std::numeric_limits<T>::quiet_NaN();
  return weighted / sum;
}

// The logarithm of the sum of exponentials of scores.
template <class T>
ALPAKA_FN_ACC ALPAKA_FN_INLINE T LogarithmOfSum(T maximum, T sum) {
  return sum == T{0} ? -std::numeric_limits<T>::infinity() : maximum + std::log(sum);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_H_
