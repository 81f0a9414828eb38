// Attention on a GPU, for any body: tiles of 64 or 128 rows by 64 keys, products in registers, from
// operands in shared memory.
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_GPU_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_GPU_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

// What a body's depths make of a block's shared memory. Channels go through it in pieces.
template <class Body>
struct AttentionTiling {
  using T = typename Body::Number;
  // Threads lie as 16 x 16 over rows and keys, or over rows and channels.
  static constexpr int kSide = 16;
  static_assert(kSide * kSide == kBlockThreads);
  // Rows and keys of a thread. More rows need fewer loads for a product; they take twice the
  // registers and the shared memory, of which two blocks are to find enough on a multiprocessor.
  static constexpr bool kIsMiddling = Body::kDepth > 32 && Body::kDepth <= 64 &&
                                      Body::kValueDepth > 32 && Body::kValueDepth <= 64 &&
                                      sizeof(T) == 4;
  static constexpr int kOwnRows = kIsMiddling ? 8 : 4;
  static constexpr int kOwnKeys = 4;
  static constexpr int kRows = kOwnRows * kSide;
  static constexpr int kKeys = kOwnKeys * kSide;

  static constexpr int Rounded(int channels) { return (channels + kSide - 1) / kSide * kSide; }
  static constexpr int kMostOfPiece = 512 / sizeof(T);
  static constexpr int kPiece =
      Rounded(Body::kDepth) < kMostOfPiece ? Rounded(Body::kDepth) : kMostOfPiece;
  static constexpr int kPieces = (Body::kDepth + kPiece - 1) / kPiece;
  static constexpr int kValuePiece =
      Rounded(Body::kValueDepth) < kMostOfPiece ? Rounded(Body::kValueDepth) : kMostOfPiece;
  // Pieces of the result that a thread has in registers; for more of them it all begins anew.
  static constexpr int kMostPieces = 2;
  static constexpr int kAllValuePieces = (Body::kValueDepth + kValuePiece - 1) / kValuePiece;
  static constexpr int kValuePieces = kAllValuePieces < kMostPieces ? kAllValuePieces : kMostPieces;
  static constexpr int kPasses = (kAllValuePieces + kValuePieces - 1) / kValuePieces;
  // Channels of a piece that a thread has, in vectors of so many.
  static constexpr int kColumns = kValuePiece / kSide;
  static constexpr int kVector = kColumns % 4 == 0 ? 4 : kColumns % 2 == 0 ? 2 : 1;

  // Rows of transposed operands, one for each channel, are 4 numbers longer: neighbouring channels
  // lie in different banks.
  static constexpr int kPitch = kRows + 4;
  static constexpr int kQueryNumbers = kPiece * kPitch;
  static constexpr int kKeyPitch = kKeys + 4;
  static constexpr int kKeyNumbers =
      kPiece * kKeyPitch > kKeys* kValuePiece ? kPiece * kKeyPitch : kKeys * kValuePiece;
  static constexpr int kWeightNumbers = kKeys * kPitch;
  static constexpr int kSharedBytes =
      (kQueryNumbers + kKeyNumbers + kWeightNumbers) * static_cast<int>(sizeof(T));
};

// The units are tiles of rows of one head.
template <class Body, class I>
struct AttentionOnGpu {
  using T = typename Body::Number;
  using Tiling = AttentionTiling<Body>;
  static constexpr int kOwnRows = Tiling::kOwnRows;
  static constexpr int kOwnKeys = Tiling::kOwnKeys;
  static constexpr int kPitch = Tiling::kPitch;
  static constexpr int kKeyPitch = Tiling::kKeyPitch;
  static constexpr int kVector = Tiling::kVector;

  Body body;
  AttentionArgs args;
  int64_t tiles;

  static void Launch(LaunchContext& context, const Body& body, const AttentionArgs& args);

  __device__ __forceinline__ void operator()() const {
    extern __shared__ __align__(128) unsigned char shared[];
    Block block(*this, reinterpret_cast<T*>(shared));
    const int64_t units = tiles * args.heads;
    for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const int64_t head = unit / tiles;
      // Later rows may see more keys: they come first, so that no long tile is the last to start.
      const auto tile = static_cast<I>(tiles - 1 - (unit - head * tiles));
      const AttentionRows<I> rows = RowsOfTile<Tiling::kRows, I>(body, args, tile);
      if (rows.begin >= rows.end) continue;
#pragma unroll 1
      for (int pass = 0; pass < Tiling::kPasses; ++pass) {
        block.Run(rows, static_cast<I>(head), pass * Tiling::kValuePieces);
      }
    }
  }

 private:
  // Numbers that are read at once.
  template <int kCount>
  struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Numbers {
    T x[kCount];
  };

  // What a thread of a block keeps while it runs.
  struct Block {
    const AttentionOnGpu& kernel;
    T* const query;   // [kPiece, kPitch], transposed
    T* const key;     // [kPiece, kKeyPitch]; and, after the products, values [kKeys, kValuePiece]
    T* const weight;  // [kKeys, kPitch]
    const int own_row;
    const int column;
    AttentionRows<I> rows;
    I head;
    I key_head;
    T mean[Tiling::kValuePieces][kOwnRows][Tiling::kColumns];
    T maximum[kOwnRows];
    T sum[kOwnRows];

    __device__ __forceinline__ Block(const AttentionOnGpu& kernel, T* shared)
        : kernel(kernel),
          query(shared),
          key(query + Tiling::kQueryNumbers),
          weight(key + Tiling::kKeyNumbers),
          own_row(static_cast<int>(threadIdx.x) / Tiling::kSide * kOwnRows),
          column(static_cast<int>(threadIdx.x) % Tiling::kSide) {}

    // The rows of a head, and pieces of the result from `first_piece` on.
    __device__ __forceinline__ void Run(const AttentionRows<I>& tile, I tile_head,
                                        int first_piece) {
      const Body& body = kernel.body;
      rows = tile;
      head = tile_head;
      key_head = head / static_cast<I>(kernel.args.heads / kernel.args.key_heads);
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) {
        maximum[r] = -std::numeric_limits<T>::infinity();
        sum[r] = T{0};
#pragma unroll
        for (int p = 0; p < Tiling::kValuePieces; ++p) {
#pragma unroll
          for (int c = 0; c < Tiling::kColumns; ++c) mean[p][r][c] = T{0};
        }
      }
      if (rows.belongs) {
        const I last = rows.end - 1;
        const I first_key = body.FirstKey(rows.sequence, rows.begin);
        const I end_key = body.EndKey(rows.sequence, last);
        // Keys that all rows see.
        const I inner_begin = body.FirstKey(rows.sequence, last);
        const I inner_end = body.EndKey(rows.sequence, rows.begin);
        const bool is_full = rows.end - rows.begin == Tiling::kRows;
        if constexpr (Tiling::kPieces == 1) {
          __syncthreads();  // The last tile's query has been read.
          if (first_key < end_key) LoadQuery(0);
        }
        for (I at = first_key; at < end_key; at += Tiling::kKeys) {
          const bool all = is_full && at >= inner_begin && at + Tiling::kKeys <= inner_end;
          Keys(at, end_key, all, first_piece);
        }
      }
      Store(first_piece);
    }

    // Channels from `first` on of all rows, or zeros: element(r, c) of `count` rows.
    template <int kHeight, int kWidth, class Element, class Put>
    __device__ __forceinline__ void Load(int count, int channels, const Element& element,
                                         const Put& put) {
      constexpr int kEach = kHeight * kWidth / static_cast<int>(kBlockThreads);
      constexpr int kAtOnce = kEach % 8 == 0 ? 8 : 4;
      static_assert(kEach % kAtOnce == 0);
#pragma unroll 1
      for (int i = 0; i < kEach; i += kAtOnce) {
        T held[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int place = Place(i + j);
          const int r = place / kWidth;
          const int c = place % kWidth;
          held[j] = r < count && c < channels ? element(r, c) : T{0};
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int place = Place(i + j);
          put(place / kWidth, place % kWidth, held[j]);
        }
      }
    }

    __device__ __forceinline__ void LoadQuery(int piece) {
      const Body& body = kernel.body;
      const int first = piece * Tiling::kPiece;
      Load<Tiling::kRows, Tiling::kPiece>(
          static_cast<int>(rows.end - rows.begin), Body::kDepth - first,
          [&](int r, int c) {
            return body.Query(rows.sequence, head, rows.begin + r, static_cast<I>(first + c));
          },
          [&](int r, int c, T x) { query[c * kPitch + r] = x; });
    }

    // Keys [at, at + kKeys) before `end`; `all`: every row is there and sees all of them.
    __device__ __forceinline__ void Keys(I at, I end, bool all, int first_piece) {
      const Body& body = kernel.body;
      const int count = static_cast<int>(end - at < Tiling::kKeys ? end - at : Tiling::kKeys);
      T score[kOwnRows][kOwnKeys] = {};
#pragma unroll 1
      for (int piece = 0; piece < Tiling::kPieces; ++piece) {
        const int first = piece * Tiling::kPiece;
        __syncthreads();  // What was here has been read.
        if constexpr (Tiling::kPieces > 1) LoadQuery(piece);
        Load<Tiling::kKeys, Tiling::kPiece>(
            count, Body::kDepth - first,
            [&](int r, int c) {
              return body.Key(rows.sequence, key_head, at + r, static_cast<I>(first + c));
            },
            [&](int r, int c, T x) { key[c * kKeyPitch + r] = x; });
        __syncthreads();
#pragma unroll 8
        for (int c = 0; c < Tiling::kPiece; ++c) {
          const auto q = Read<kOwnRows>(query + c * kPitch + own_row);
          const auto k = Read<kOwnKeys>(key + c * kKeyPitch + column * kOwnKeys);
#pragma unroll
          for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
            for (int e = 0; e < kOwnKeys; ++e) score[r][e] += q.x[r] * k.x[e];
          }
        }
      }
      Weights(score, at, all);
#pragma unroll
      for (int p = 0; p < Tiling::kValuePieces; ++p) {
        const int first = (first_piece + p) * Tiling::kValuePiece;
        __syncthreads();  // Keys, or the last piece of values, have been read.
        Load<Tiling::kKeys, Tiling::kValuePiece>(
            count, Body::kValueDepth - first,
            [&](int r, int c) {
              return body.Value(rows.sequence, key_head, at + r, static_cast<I>(first + c));
            },
            [&](int r, int c, T x) { key[r * Tiling::kValuePiece + c] = x; });
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < Tiling::kKeys; ++k) {
          const auto w = Read<kOwnRows>(weight + k * kPitch + own_row);
#pragma unroll
          for (int c = 0; c < Tiling::kColumns; c += kVector) {
            const auto v = Read<kVector>(key + k * Tiling::kValuePiece + Channel(c));
#pragma unroll
            for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
              for (int e = 0; e < kVector; ++e) mean[p][r][c + e] += w.x[r] * v.x[e];
            }
          }
        }
      }
    }

    // Turns products into exponentials, in shared memory.
    __device__ __forceinline__ void Weights(T (&score)[kOwnRows][kOwnKeys], I at, bool all) {
      const Body& body = kernel.body;
      const T scale = static_cast<T>(kernel.args.scale);
      const T soft_cap = static_cast<T>(kernel.args.soft_cap);
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) {
        const I row = rows.begin + own_row + r;
        I low = at;
        I high = at + Tiling::kKeys;
        if (!all) {
          const bool valid = row < rows.end;
          low = valid ? body.FirstKey(rows.sequence, row) : high;
          high = valid ? body.EndKey(rows.sequence, row) : low;
        }
        T largest = maximum[r];
#pragma unroll
        for (int e = 0; e < kOwnKeys; ++e) {
          const I k = at + column * kOwnKeys + e;
          T x = -std::numeric_limits<T>::infinity();
          if (k >= low && k < high) {
            x = Score<Body>(score[r][e], scale, soft_cap);
            if constexpr (Body::kHasBias) {
              x = Biased<Body>(x, body.Bias(rows.sequence, head, row, k));
            }
          }
          score[r][e] = x;
          largest = LargerScore(largest, x);
        }
#pragma unroll
        for (int mask = Tiling::kSide / 2; mask > 0; mask /= 2) {
          largest = LargerScore(largest, ShuffleXor(largest, mask));
        }
        const T shift = ScoreShift(largest);
        const T shrink = Exp<T>(maximum[r] - shift);
        maximum[r] = largest;
        T part = T{0};
#pragma unroll
        for (int e = 0; e < kOwnKeys; ++e) {
          score[r][e] = Exp<T>(score[r][e] - shift);
          part += score[r][e];
        }
#pragma unroll
        for (int mask = Tiling::kSide / 2; mask > 0; mask /= 2) part += ShuffleXor(part, mask);
        sum[r] = sum[r] * shrink + part;
#pragma unroll
        for (int p = 0; p < Tiling::kValuePieces; ++p) {
#pragma unroll
          for (int c = 0; c < Tiling::kColumns; ++c) mean[p][r][c] *= shrink;
        }
      }
#pragma unroll
      for (int e = 0; e < kOwnKeys; ++e) {
        Numbers<kOwnRows> w;
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r) w.x[r] = score[r][e];
        *reinterpret_cast<Numbers<kOwnRows>*>(weight + (column * kOwnKeys + e) * kPitch + own_row) =
            w;
      }
    }

    __device__ __forceinline__ void Store(int first_piece) {
      const Body& body = kernel.body;
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) {
        const I row = rows.begin + own_row + r;
        if (row >= rows.end) continue;
#pragma unroll
        for (int p = 0; p < Tiling::kValuePieces; ++p) {
#pragma unroll
          for (int c = 0; c < Tiling::kColumns; ++c) {
            const int channel = (first_piece + p) * Tiling::kValuePiece + Channel(c);
            if (channel < Body::kValueDepth) {
              body.Store(rows.sequence, head, row, static_cast<I>(channel),
                         WeightedMean<Body>(mean[p][r][c], sum[r]));
            }
          }
        }
        if constexpr (Body::kHasSums) {
          if (rows.belongs && column == 0 && first_piece == 0) {
            body.StoreSum(rows.sequence, head, row, LogarithmOfSum(maximum[r], sum[r]));
          }
        }
      }
    }

    template <int kCount>
    __device__ __forceinline__ static Numbers<kCount> Read(const T* from) {
      return *reinterpret_cast<const Numbers<kCount>*>(from);
    }
    // The element of a piece of an operand that the thread loads as its i-th.
    __device__ __forceinline__ static int Place(int i) {
      return i * static_cast<int>(kBlockThreads) + static_cast<int>(threadIdx.x);
    }
    // The thread's channel number c of a piece of the result.
    __device__ __forceinline__ int Channel(int c) const {
      return c / kVector * Tiling::kSide * kVector + column * kVector + c % kVector;
    }
  };
};

// The entry point of attention: its shared memory is more than alpaka's entry can ask for.
template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads)
    AttentionEntry(const __grid_constant__ Kernel kernel) {
  WaitForKernelAhead();
  kernel();
}

template <class Body, class I>
void AttentionOnGpu<Body, I>::Launch(LaunchContext& context, const Body& body,
                                     const AttentionArgs& args) {
  const GpuLimits& limits = LimitsOf(context);
  if (limits.threads_per_block < kBlockThreads || limits.shared_bytes < Tiling::kSharedBytes) {
    throw DeviceError("the device has " + std::to_string(limits.threads_per_block) +
                      " threads and " + std::to_string(limits.shared_bytes) +
                      " bytes of shared memory for a block; attention needs " +
                      std::to_string(kBlockThreads) + " and " +
                      std::to_string(Tiling::kSharedBytes));
  }
  AttentionOnGpu kernel{body, args, AttentionTiles<Tiling::kRows, Body>(args)};
  const int64_t blocks =
      std::min<int64_t>(kernel.tiles * args.heads, std::numeric_limits<int32_t>::max());
  LaunchKernel(context, reinterpret_cast<const void*>(&AttentionEntry<AttentionOnGpu>),
               dim3(static_cast<uint32_t>(blocks)), Tiling::kSharedBytes, kernel);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_GPU_H_
