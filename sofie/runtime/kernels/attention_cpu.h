// Attention on the CPU: a tile of query rows meets one block of keys after the other, all of it in
// the second-level cache.
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_CPU_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_CPU_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/reduce_cpu.h"

namespace sofie::kernels {

// The units are tiles of rows of one head.
template <class Body>
struct AttentionOnCpu {
  using T = typename Body::Number;
  static constexpr int64_t kDepth = Body::kDepth;
  static constexpr int64_t kValueDepth = Body::kValueDepth;

  // Numbers in memory for so many rows and keys.
  static constexpr int64_t Numbers(int64_t rows, int64_t keys) {
    return rows * (kDepth + kValueDepth + keys + 2) + keys * (kDepth + kValueDepth);
  }
  // What fits into a thread's workspace.
  static constexpr int64_t Most(int64_t keys_per_row) {
    int64_t rows = 64;
    while (rows > 1 && Numbers(rows, keys_per_row * rows) * static_cast<int64_t>(sizeof(T)) >
                           static_cast<int64_t>(kHostWorkspaceBytesPerThread)) {
      rows /= 2;
    }
    return rows;
  }
  static constexpr int64_t kRows = Most(2);
  static constexpr int64_t kKeys = 2 * kRows;
  static_assert(Numbers(kRows, kKeys) * sizeof(T) <= kHostWorkspaceBytesPerThread);

  Body body;
  AttentionArgs args;
  std::byte* workspace;
  int64_t tiles;
  int64_t shares;

  template <class B>
  static void Launch(LaunchContext& context, const Body& body, const AttentionArgs& args) {
    const int64_t threads = std::max(context.threads(), 1);
    if (context.workspace_bytes() < kHostWorkspaceBytesPerThread * static_cast<size_t>(threads)) {
      throw ArgumentError("Attention: the context's workspace of " +
                          std::to_string(context.workspace_bytes()) +
                          " bytes is too small for its threads");
    }
    const int64_t tiles = AttentionTiles<kRows, Body>(args);
    const int64_t shares = std::min(tiles * args.heads, threads);
    LaunchUnits<B>(
        context, shares, args.heads * args.rows * std::max<int64_t>(args.keys, 1) * kDepth,
        AttentionOnCpu{body, args, static_cast<std::byte*>(context.workspace()), tiles, shares});
  }

  // Each share takes every so many-th tile: rows that come later may see more keys.
  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    for (int64_t share = begin; share < end; ++share) {
      T* const memory = reinterpret_cast<T*>(workspace + static_cast<size_t>(share) *
                                                             kHostWorkspaceBytesPerThread);
      for (int64_t unit = share; unit < tiles * args.heads; unit += shares) {
        const int64_t head = unit / tiles;
        const auto rows = RowsOfTile<static_cast<int>(kRows), int64_t>(body, args, unit % tiles);
        if (rows.begin < rows.end) Tile(body, args, rows, head, memory).Run();
      }
    }
  }

 private:
  struct Tile {
    const Body body;  // A copy that no store in the body can alias.
    const AttentionArgs& args;
    const AttentionRows<int64_t> rows;
    const int64_t head;
    const int64_t key_head;
    const int64_t count;
    T* const query;  // [kRows, kDepth]
    T* const key;    // [kKeys, kDepth]
    T* const value;  // [kKeys, kValueDepth]
    T* const score;  // [kRows, kKeys]
    T* const mean;   // [kRows, kValueDepth]
    T* const maximum;
    T* const sum;

    Tile(const Body& body, const AttentionArgs& args, const AttentionRows<int64_t>& rows,
         int64_t head, T* memory)
        : body(body),
          args(args),
          rows(rows),
          head(head),
          key_head(head / (args.heads / args.key_heads)),
          count(rows.end - rows.begin),
          query(memory),
          key(query + kRows * kDepth),
          value(key + kKeys * kDepth),
          score(value + kKeys * kValueDepth),
          mean(score + kRows * kKeys),
          maximum(mean + kRows * kValueDepth),
          sum(maximum + kRows) {}

    void Run() {
      std::fill(mean, mean + count * kValueDepth, T{0});
      std::fill(maximum, maximum + count, -std::numeric_limits<T>::infinity());
      std::fill(sum, sum + count, T{0});
      if (rows.belongs) {
        const int64_t first = body.FirstKey(rows.sequence, rows.begin);
        const int64_t end = body.EndKey(rows.sequence, rows.end - 1);
        if (first < end) LoadQuery();
        for (int64_t at = first; at < end; at += kKeys) Block(at, std::min(end, at + kKeys));
      }
      Store();
    }

    void LoadQuery() {
      for (int64_t r = 0; r < count; ++r) {
#pragma GCC ivdep
        for (int64_t c = 0; c < kDepth; ++c) {
          query[r * kDepth + c] = body.Query(rows.sequence, head, rows.begin + r, c);
        }
      }
    }

    // Keys [begin, end).
    void Block(int64_t begin, int64_t end) {
      const int64_t keys = end - begin;
      for (int64_t k = 0; k < keys; ++k) {
#pragma GCC ivdep
        for (int64_t c = 0; c < kDepth; ++c) {
          key[k * kDepth + c] = body.Key(rows.sequence, key_head, begin + k, c);
        }
#pragma GCC ivdep
        for (int64_t c = 0; c < kValueDepth; ++c) {
          value[k * kValueDepth + c] = body.Value(rows.sequence, key_head, begin + k, c);
        }
      }
      GemmArgs<T> products{.a = query, .b = key, .d = score, .m = count, .n = keys};
      products.k = products.lda = products.ldb = kDepth;
      products.ldd = kKeys;
      products.trans_b = true;
      GemmInThread(products);
      for (int64_t r = 0; r < count; ++r) Weights(r, begin, end);
      GemmArgs<T> means{.a = score, .b = value, .d = mean, .m = count};
      means.n = means.ldb = means.ldd = kValueDepth;
      means.k = keys;
      means.lda = kKeys;
      means.beta = 1;
      GemmInThread(means);
    }

    struct LargestScore {
      using Accumulator = T;
      static T Identity() { return -std::numeric_limits<T>::infinity(); }
      T operator()(T a, T b) const { return LargerScore(a, b); }
    };

    // Turns products of row r with keys [begin, end) into exponentials.
    void Weights(int64_t r, int64_t begin, int64_t end) {
      const int64_t row = rows.begin + r;
      T* const line = score + r * kKeys;
      // Which of them the row sees.
      const int64_t low = std::clamp(body.FirstKey(rows.sequence, row), begin, end);
      const int64_t high = std::clamp(body.EndKey(rows.sequence, row), low, end);
      std::fill(line, line + (low - begin), T{0});
      std::fill(line + (high - begin), line + (end - begin), T{0});
      if (low == high) return;
      T* const seen = line + (low - begin);
      const int64_t length = high - low;
      const T scale = static_cast<T>(args.scale);
      const T soft_cap = static_cast<T>(args.soft_cap);
#pragma GCC ivdep
      for (int64_t k = 0; k < length; ++k) {
        T x = Score<Body>(seen[k], scale, soft_cap);
        if constexpr (Body::kHasBias) {
          x = Biased<Body>(x, body.Bias(rows.sequence, head, row, low + k));
        }
        seen[k] = x;
      }
      const auto at = [&](const std::array<int64_t, 1>& index) { return seen[index[0]]; };
      const T largest =
          LargerScore(maximum[r], AccumulateRow<LargestScore>(std::array{length}, at));
      const T shift = ScoreShift(largest);
      const T shrink = Exp<T>(maximum[r] - shift);
#pragma GCC ivdep
      for (int64_t k = 0; k < length; ++k) seen[k] = ExpOfNonPositive<T>(seen[k] - shift);
      sum[r] = sum[r] * shrink + AccumulateRow<Sum<T>>(std::array{length}, at);
      if (shrink != T{1}) {
        for (int64_t c = 0; c < kValueDepth; ++c) mean[r * kValueDepth + c] *= shrink;
      }
      maximum[r] = largest;
    }

    void Store() {
      for (int64_t r = 0; r < count; ++r) {
        const T total = sum[r];
#pragma GCC ivdep
        for (int64_t c = 0; c < kValueDepth; ++c) {
          body.Store(rows.sequence, head, rows.begin + r, c,
                     WeightedMean<Body>(mean[r * kValueDepth + c], total));
        }
        if constexpr (Body::kHasSums) {
          if (rows.belongs) {
            body.StoreSum(rows.sequence, head, rows.begin + r, LogarithmOfSum(maximum[r], total));
          }
        }
      }
    }
  };
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_CPU_H_
