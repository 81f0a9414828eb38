// Attention on tensor cores from Ampere on, for operands of 16 bits whose channels are neighbours
// in memory. Each of a block's warps takes 16 query rows through all keys, in tiles that the whole
// block copies into shared memory: a tile's values while it computes the scores, the next one's
// keys while it computes the means.
//
// Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", ICLR
// 2024.
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_MMA_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_MMA_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/attention_fragments.h"
#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/kernels/launch.h"

namespace sofie::kernels {

// What a body's depths make of a block's shared memory and registers.
template <class Body>
struct AttentionMmaTiling : AttentionDepths<Body> {
  using AttentionDepths<Body>::kDepth;
  using AttentionDepths<Body>::kValueDepth;
  static constexpr int kWarps = static_cast<int>(kBlockThreads / kWarpThreads);
  static constexpr int kRows = 16 * kWarps;
  // The shared memory of a block is 99 KB on some GPUs; registers are 255 for a thread.
  static constexpr int SharedBytes(int keys) {
    return 2 * (kRows * kDepth + keys * (kDepth + kValueDepth));
  }
  static constexpr int kKeys = SharedBytes(64) <= 99 * 1024 ? 64 : 32;
  static constexpr int kSharedBytes = SharedBytes(kKeys);
};

template <class Body, class I>
struct AttentionMma {
  using Tiling = AttentionMmaTiling<Body>;
  static constexpr int kKeys = Tiling::kKeys;

  AttentionUnits<Body, I, Tiling::kRows> units;

  static void Launch(LaunchContext& context, const Body& body, const AttentionArgs& args);

  __device__ __forceinline__ void operator()() const {
    extern __shared__ __align__(kPanelAlignment) unsigned char panels[];
    Block block(*this, SharedAddress(panels));
    units.ForEach([&](const AttentionUnit<I>& unit) {
      block.rows.Begin(unit);
      if (unit.has_keys()) block.Attend();
      block.rows.Store();
    });
  }

 private:
  // What a thread of a block keeps while it runs.
  struct Block {
    using Rows = AttentionFragments<Body, I, kKeys, Tiling::kValueDepth>;

    Rows rows;
    const uint32_t query;  // addresses in shared memory
    const uint32_t key;
    const uint32_t value;

    __device__ __forceinline__ Block(const AttentionMma& kernel, uint32_t shared)
        : rows(kernel.units.body, kernel.units.args),
          query(shared),
          key(query + 2 * Tiling::kRows * Tiling::kDepth),
          value(key + 2 * kKeys * Tiling::kDepth) {}

    __device__ __forceinline__ void Attend() {
      const AttentionUnit<I>& unit = rows.unit;
      const Body& body = rows.body;
      __syncthreads();  // The last unit's tiles have been read.
      Copy<Tiling::kRows, Body::kDepth>(
          query, static_cast<int>(unit.rows.end - unit.rows.begin),
          [&](int r) { return body.QueryRow(unit.rows.sequence, unit.head, unit.rows.begin + r); });
      CopyKeys(unit.first_key);
#pragma unroll 1
      for (I at = unit.first_key; at < unit.end_key; at += kKeys) {
        WaitForCopies<0>();
        __syncthreads();  // Keys are there, and the last tile's values have been read.
        Copy<kKeys, Body::kValueDepth>(value, Count(at), [&](int r) {
          return body.ValueRow(unit.rows.sequence, unit.key_head, at + r);
        });
        float score[Rows::kScores] = {};
        MultiplyKeys(score);
        WaitForCopies<0>();
        __syncthreads();  // Values are there, and keys have been read.
        if (at + kKeys < unit.end_key) CopyKeys(at + kKeys);
        float shrink[2];
        rows.Weigh(score, at, shrink);
        rows.Shrink(shrink);
        uint32_t weight[kKeys / 16][4];
        Rows::Pack(score, weight);
        MultiplyValues(weight);
      }
    }

    __device__ __forceinline__ int Count(I at) const {
      return static_cast<int>(rows.unit.end_key - at < kKeys ? rows.unit.end_key - at : kKeys);
    }
    __device__ __forceinline__ void CopyKeys(I at) const {
      Copy<kKeys, Body::kDepth>(key, Count(at), [&](int r) {
        return rows.body.KeyRow(rows.unit.rows.sequence, rows.unit.key_head, at + r);
      });
    }
    template <int kRows, int kChannels, class Row>
    __device__ __forceinline__ void Copy(uint32_t to, int count, const Row& row) const {
      CopyRows<kRows, kChannels, Tiling::kWarps>(to, static_cast<int>(threadIdx.x / kWarpThreads),
                                                 count, row);
      CommitCopies();
    }

    // score += query · keyᵀ.
    __device__ __forceinline__ void MultiplyKeys(float (&score)[Rows::kScores]) const {
      const uint32_t lane = rows.lane;
      // Fragments are made of four matrices, whose rows' addresses groups of eight lanes give: of
      // queries rows 0 … 7 and 8 … 15, then the same of the next 8 channels; of keys channels
      // 0 … 7 and 8 … 15, then the same of the next 8 keys.
      const uint32_t a_row = threadIdx.x / kWarpThreads * 16 + lane % 16;
      const uint32_t b_row = lane / 16 * 8 + lane % 8;
#pragma unroll
      for (int step = 0; step < Tiling::kSteps; ++step) {
        constexpr int kPanelSteps = kPanelChannels / 16;
        const uint32_t panel = step / kPanelSteps;
        const uint32_t piece = step % kPanelSteps * 2;
        uint32_t a[4];
        LoadFragment(a,
                     query + panel * (Tiling::kRows * kRowBytes) + Piece(a_row, piece + lane / 16));
#pragma unroll
        for (int j = 0; j < kKeys / 8; j += 2) {
          uint32_t b[4];
          LoadFragment(b, key + panel * (kKeys * kRowBytes) + j * 8 * kRowBytes +
                              Piece(b_row, piece + lane / 8 % 2));
          MultiplyAdd<Rows::kPrecision>(Columns(score, j), a, b[0], b[1]);
          MultiplyAdd<Rows::kPrecision>(Columns(score, j + 1), a, b[2], b[3]);
        }
      }
    }

    // mean += weight · value.
    __device__ __forceinline__ void MultiplyValues(const uint32_t (&weight)[kKeys / 16][4]) {
      const uint32_t lane = rows.lane;
      // Of values keys 0 … 7 and 8 … 15, then the same of the next 8 channels.
      const uint32_t row = lane % 16;
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
#pragma unroll
        for (int p = 0; p < Rows::kPanels; ++p) {
#pragma unroll
          for (int j = 0; j < 8; j += 2) {
            uint32_t b[4];
            LoadTransposed(b,
                           value + (p * kKeys + step * 16) * kRowBytes + Piece(row, j + lane / 16));
            MultiplyAdd<Rows::kPrecision>(Columns(rows.mean[p], j), weight[step], b[0], b[1]);
            MultiplyAdd<Rows::kPrecision>(Columns(rows.mean[p], j + 1), weight[step], b[2], b[3]);
          }
        }
      }
    }

    // The elements of a matrix's columns 8 j … 8 j + 7.
    template <int kSize>
    __device__ __forceinline__ static float (&Columns(float (&x)[kSize], int j))[4] {
      return reinterpret_cast<float (&)[4]>(x[4 * j]);
    }
  };
};

template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads)
    AttentionMmaEntry(const __grid_constant__ Kernel kernel) {
  WaitForKernelAhead();
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  kernel();
#endif
}

template <class Body, class I>
void AttentionMma<Body, I>::Launch(LaunchContext& context, const Body& body,
                                   const AttentionArgs& args) {
  AttentionMma kernel{{body, args}};
  const auto entry = reinterpret_cast<const void*>(&AttentionMmaEntry<AttentionMma>);
  const int64_t blocks =
      std::min<int64_t>(kernel.units.tiles * args.heads, std::numeric_limits<int32_t>::max());
  LaunchKernel(context, entry, dim3(static_cast<uint32_t>(blocks)), Tiling::kSharedBytes, kernel);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_MMA_H_
