// Attention's rows in fragments of the tensor cores: what kernels share that multiply by them.
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_FRAGMENTS_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_FRAGMENTS_H_

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "sofie/runtime/float16.h"
#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/kernels/warp.h"
#include "sofie/runtime/precision.h"

namespace sofie::kernels {

// A body has besides (attention.h), where operands of 16 bits are in memory as they are, the
// channels of a row as neighbours:
//   QueryRow(b, h, row), KeyRow(b, g, key), ValueRow(b, g, key)   the address of a row
//   OutRow(b, h, row)                                             likewise, of the result
// Either all of the operands have them, of one type, or none.
template <class Body>
concept HasAttentionRows = requires(const Body& body) {
  body.QueryRow(0, 0, 0);
  body.KeyRow(0, 0, 0);
  body.ValueRow(0, 0, 0);
};
template <class Body>
concept HasAttentionOutRow = requires(const Body& body) { body.OutRow(0, 0, 0); };

// Tensor cores take rows of 16 bytes at a time.
template <class Body>
constexpr bool FitsTensorCores() {
  if constexpr (HasAttentionRows<Body>) {
    return Body::kDepth % 8 == 0 && Body::kValueDepth % 8 == 0 && Body::kDepth <= 256 &&
           Body::kValueDepth <= 256;
  } else {
    return false;
  }
}

template <class Body>
using AttentionElement =
    std::remove_cvref_t<decltype(*std::declval<const Body&>().QueryRow(0, 0, 0))>;

// Rows of a head, and the keys that any of them sees.
template <class I>
struct AttentionUnit {
  AttentionRows<I> rows;
  I head;
  I key_head;
  I first_key = 0;
  I end_key = 0;

  __device__ __forceinline__ bool exists() const { return rows.begin < rows.end; }
  __device__ __forceinline__ bool has_keys() const { return first_key < end_key; }
};

// The units of a kernel, tiles of kRows rows of one head each.
template <class Body, class I, int kRows>
struct AttentionUnits {
  Body body;
  AttentionArgs args;
  int64_t tiles;

  AttentionUnits(const Body& body, const AttentionArgs& args)
      : body(body), args(args), tiles(AttentionTiles<kRows, Body>(args)) {}

  // Later rows may see more keys: their units come first, those of all heads.
  __device__ __forceinline__ AttentionUnit<I> At(int64_t number) const {
    AttentionUnit<I> unit;
    const int64_t tile = number / args.heads;
    unit.head = static_cast<I>(number - tile * args.heads);
    unit.key_head = unit.head / static_cast<I>(args.heads / args.key_heads);
    unit.rows = RowsOfTile<kRows, I>(body, args, static_cast<I>(tiles - 1 - tile));
    if (unit.exists() && unit.rows.belongs) {
      unit.first_key = body.FirstKey(unit.rows.sequence, unit.rows.begin);
      unit.end_key = body.EndKey(unit.rows.sequence, unit.rows.end - 1);
    }
    return unit;
  }

  // Calls `use` with the block's units. Every other round goes backwards: where units get shorter,
  // no block has the longest one of each round.
  template <class Use>
  __device__ __forceinline__ void ForEach(const Use& use) const {
    const int64_t units = tiles * args.heads;
    bool backwards = false;
#pragma unroll 1
    for (int64_t first = 0; first < units; first += gridDim.x) {
      const int64_t number = first + (backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
      backwards = !backwards;
      if (number >= units) continue;
      const AttentionUnit<I> unit = At(number);
      if (unit.exists()) use(unit);
    }
  }
};

// Rows of an operand in shared memory, in panels of 64 channels, or 128 bytes, which begin at
// multiples of 1024: their pieces of 16 bytes are permuted (Piece), so that neither eight rows of a
// piece nor the pieces of a row meet in a bank. PTX: 128-byte swizzling.
inline constexpr int kPanelChannels = 64;
inline constexpr uint32_t kRowBytes = 128;
inline constexpr uint32_t kPanelAlignment = 8 * kRowBytes;

// The channels of all panels.
constexpr int PanelChannels(int channels) {
  return (channels + kPanelChannels - 1) / kPanelChannels * kPanelChannels;
}
// A body's depths in panels.
template <class Body>
struct AttentionDepths {
  static constexpr int kDepth = PanelChannels(Body::kDepth);
  static constexpr int kValueDepth = PanelChannels(Body::kValueDepth);
  static constexpr int kSteps = (Body::kDepth + 15) / 16;  // of 16 channels in products
};
// Where a piece of a panel's row is.
__device__ __forceinline__ constexpr uint32_t Piece(uint32_t row, uint32_t piece) {
  return row * kRowBytes + (piece ^ row % 8) * 16;
}

// Starts to copy `count` of kRows rows of kChannels, and zeros behind them, by kWarps warps, of
// which the thread's is number `warp`. False: the thread wrote elements itself, of rows that are
// not aligned to 16 bytes.
template <int kRows, int kChannels, int kWarps, class Row>
__device__ __forceinline__ bool CopyRows(uint32_t to, int warp, int count, const Row& row) {
  // Eight lanes have a row of a panel: a line of the cache.
  const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
  const int piece = lane % 8;
  bool copied = true;
#pragma unroll 2
  for (int r = 4 * warp + lane / 8; r < kRows; r += 4 * kWarps) {
    const bool inside = r < count;
    const auto* const from = row(inside ? r : count - 1);
    const bool aligned = reinterpret_cast<uintptr_t>(from) % 16 == 0;
    copied = copied && aligned;
    const uint32_t address = to + Piece(static_cast<uint32_t>(r), static_cast<uint32_t>(piece));
#pragma unroll
    for (int first = 0; first < kChannels; first += kPanelChannels) {
      const uint32_t there = address + first / kPanelChannels * (kRows * kRowBytes);
      const int channel = first + 8 * piece;
      const bool exists = inside && channel < kChannels;
      const auto* const source = exists ? from + channel : from;
      if (aligned) {
        CopyAsync16(there, source, exists ? 16 : 0);
        continue;
      }
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t high = exists ? source[2 * i + 1].bits : 0;
        words[i] = exists ? source[2 * i].bits | high << 16 : 0;
      }
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(there), "r"(words[0]),
                   "r"(words[1]), "r"(words[2]), "r"(words[3])
                   : "memory");
    }
  }
  return copied;
}

// What a thread keeps of its warp's 16 rows, in tiles of kKeys keys: of two rows 8 apart, the
// elements of MultiplyAdd's fragments. Of a matrix's columns 8 j … 8 j + 7 it has elements
// 4 j … 4 j + 3, two of either row.
template <class Body, class I, int kKeys, int kValueDepth>
struct AttentionFragments {
  using Element = AttentionElement<Body>;
  static constexpr Precision kPrecision =
      std::is_same_v<Element, Float16> ? Precision::kFloat16 : Precision::kBfloat16;
  static constexpr int kScores = kKeys / 2;
  static constexpr int kPanels = kValueDepth / 64;
  static constexpr float kLog2E = 1.4426950408889634f;
  static constexpr float kLn2 = 0.6931471805599453f;

  const Body& body;
  const AttentionArgs& args;
  const uint32_t lane = threadIdx.x % kWarpThreads;
  // The first of the two rows of a unit that are this thread's.
  const int own_row = static_cast<int>(threadIdx.x / kWarpThreads * 16 + lane / 4);

  AttentionUnit<I> unit;
  I low[2];  // the keys that the thread's rows see
  I high[2];
  I inner_begin;  // those that all rows of the unit see
  I inner_end;
  float maximum[2];  // of the scores so far, in units of log 2
  float sum[2];
  float mean[kPanels][32];

  __device__ __forceinline__ AttentionFragments(const Body& body, const AttentionArgs& args)
      : body(body), args(args) {}

  __device__ __forceinline__ void Begin(const AttentionUnit<I>& next) {
    unit = next;
    const bool has_keys = unit.has_keys();
    inner_begin = has_keys ? body.FirstKey(unit.rows.sequence, unit.rows.end - 1) : 0;
    inner_end = has_keys ? body.EndKey(unit.rows.sequence, unit.rows.begin) : 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      maximum[r] = -std::numeric_limits<float>::infinity();
      sum[r] = 0.0f;
      const I row = unit.rows.begin + own_row + 8 * r;
      const bool sees = row < unit.rows.end && has_keys;
      low[r] = sees ? body.FirstKey(unit.rows.sequence, row) : 0;
      high[r] = sees ? body.EndKey(unit.rows.sequence, row) : 0;
    }
#pragma unroll
    for (int p = 0; p < kPanels; ++p) {
#pragma unroll
      for (int i = 0; i < 32; ++i) mean[p][i] = 0.0f;
    }
  }

  // Turns products into weights, which are exponentials of scores; `shrink` is what those of
  // earlier tiles are to be multiplied by.
  __device__ __forceinline__ void Weigh(float (&score)[kScores], I at, float (&shrink)[2]) {
    // Scores in units of log 2: exponentials are powers of 2.
    constexpr bool kIsPlain = !Body::kHasBias && !Body::kHasSoftCap;
    const float scale = static_cast<float>(args.scale);
    const bool is_plain = kIsPlain && scale > 0;
    const float unit_scale = is_plain ? scale * kLog2E : kLog2E;
    if (!is_plain) {
      const float soft_cap = static_cast<float>(args.soft_cap);
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        score[i] = Score<Body>(score[i], scale, soft_cap);
        if constexpr (Body::kHasBias) {
          const int r = i / 2 % 2;
          const I k = at + Column(i);
          if (k >= low[r] && k < high[r]) {
            score[i] = Biased<Body>(score[i], body.Bias(unit.rows.sequence, unit.head,
                                                        unit.rows.begin + own_row + 8 * r, k));
          }
        }
      }
    }
    if (at < inner_begin || at + kKeys > inner_end) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const I k = at + Column(i);
        const int r = i / 2 % 2;
        if (k < low[r] || k >= high[r]) score[i] = -std::numeric_limits<float>::infinity();
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = -std::numeric_limits<float>::infinity();
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
        largest = fmaxf(largest, fmaxf(score[i + 2 * r], score[i + 2 * r + 1]));
      }
      largest = fmaxf(largest, ShuffleXor(largest, 1));
      largest = fmaxf(largest, ShuffleXor(largest, 2));
      largest = fmaxf(maximum[r], largest * unit_scale);
      const float shift = ScoreShift(largest);
      shrink[r] = PowerOf2(maximum[r] - shift);
      maximum[r] = largest;
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = score[i + 2 * r + e];
          x = PowerOf2(fmaf(x, unit_scale, -shift));
          part += x;
        }
      }
      sum[r] = sum[r] * shrink[r] + part;
    }
  }
  // The key of a tile whose score is the thread's i-th.
  __device__ __forceinline__ int Column(int i) const {
    return i / 4 * 8 + static_cast<int>(lane % 4) * 2 + i % 2;
  }

  // Weights as the left operand of the next products.
  __device__ __forceinline__ static void Pack(const float (&score)[kScores],
                                              uint32_t (&weight)[kKeys / 16][4]) {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      uint32_t word[1];
      Split<kPrecision>(score[2 * i], score[2 * i + 1], word);
      weight[i / 4][i % 4] = word[0];
    }
  }

  // Multiplies the means so far.
  __device__ __forceinline__ void Shrink(const float (&shrink)[2]) {
#pragma unroll
    for (int p = 0; p < kPanels; ++p) {
#pragma unroll
      for (int i = 0; i < 32; ++i) mean[p][i] *= shrink[i / 2 % 2];
    }
  }

  __device__ __forceinline__ void Store() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += ShuffleXor(sum[r], 1);
      sum[r] += ShuffleXor(sum[r], 2);
      const I row = unit.rows.begin + own_row + 8 * r;
      if (row < unit.rows.end) {
        if constexpr (Body::kHasSums) {
          if (unit.rows.belongs && lane % 4 == 0) {
            body.StoreSum(unit.rows.sequence, unit.head, row,
                          LogarithmOfSum(maximum[r] * kLn2, sum[r]));
          }
        }
      }
      const float factor = WeightedMean<Body>(1.0f, sum[r]);
      if constexpr (HasAttentionOutRow<Body>) {
        StoreRow(r, row, factor);
      } else if (row < unit.rows.end) {
#pragma unroll
        for (int p = 0; p < kPanels; ++p) {
#pragma unroll
          for (int i = 0; i < 32; i += 4) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int channel = p * 64 + Column(i + e);
              if (channel < Body::kValueDepth) {
                body.Store(unit.rows.sequence, unit.head, row, static_cast<I>(channel),
                           mean[p][i + 2 * r + e] * factor);
              }
            }
          }
        }
      }
    }
  }

  // A row whose channels are neighbours in memory: the four lanes that have it exchange elements,
  // so that each writes 8 neighbours at once.
  __device__ __forceinline__ void StoreRow(int r, I row, float factor) const {
    const bool exists = row < unit.rows.end;
    Element* const to = body.OutRow(unit.rows.sequence, unit.head, exists ? row : unit.rows.begin);
    const bool aligned = reinterpret_cast<uintptr_t>(to) % 16 == 0;
#pragma unroll
    for (int p = 0; p < kPanels; ++p) {
#pragma unroll
      for (int half = 0; half < 32; half += 16) {
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* const x = &mean[p][half + 4 * j + 2 * r];
          uint32_t word[1];
          Split<kPrecision>(x[0] * factor, x[1] * factor, word);
          words[j] = word[0];
        }
        Transpose(words);
        const int channel = p * 64 + half * 2 + static_cast<int>(lane % 4) * 8;
        if (!exists || channel >= Body::kValueDepth) continue;
        if (aligned) {
          *reinterpret_cast<uint4*>(to + channel) = {words[0], words[1], words[2], words[3]};
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            to[channel + e] = Element::FromBits(static_cast<uint16_t>(words[e / 2] >> e % 2 * 16));
          }
        }
      }
    }
  }
  // words[j] of lane i becomes words[i] of lane j, of the four lanes of a row.
  __device__ __forceinline__ void Transpose(uint32_t (&words)[4]) const {
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
      const bool upper = (lane & mask) != 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if ((j & mask) != 0) continue;
        const uint32_t give = upper ? words[j] : words[j | mask];
        const uint32_t got = ShuffleXor(give, mask);
        if (upper) {
          words[j] = got;
        } else {
          words[j | mask] = got;
        }
      }
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_FRAGMENTS_H_
