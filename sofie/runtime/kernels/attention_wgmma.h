// Attention on Hopper's tensor cores, for operands of 16 bits whose channels are neighbours in
// memory. One warpgroup copies keys and values into shared memory, in tiles; the others take 64
// query rows each through all of them. Scores never leave registers: while a tile's are turned into
// weights, the last tile's weights are multiplied with its values.
//
// Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", ICLR
// 2024. Shah et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and
// Low-precision", NeurIPS 2024.
#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_WGMMA_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_WGMMA_H_

#include <algorithm>
#include <cstdint>

#include "sofie/runtime/kernels/attention.h"
#include "sofie/runtime/kernels/attention_fragments.h"
#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/warp.h"
#include "sofie/runtime/kernels/wgmma.h"

namespace sofie::kernels {

// What a body's depths make of a block's threads, registers and shared memory.
template <class Body>
struct AttentionWarpgroupTiling : AttentionDepths<Body> {
  using AttentionDepths<Body>::kDepth;
  using AttentionDepths<Body>::kValueDepth;
  // Warpgroups that compute. More rows share what is copied; three have 160 registers a thread, for
  // sums of means and scores, and for weights.
  static constexpr int kWarpgroups = kValueDepth <= 128 ? 3 : 2;
  static constexpr int kWarps = 4 * kWarpgroups;
  static constexpr int kThreads = (kWarps + 4) * static_cast<int>(kWarpThreads);
  static constexpr int kRows = 64 * kWarpgroups;
  static constexpr int kMostKeys = kValueDepth <= 64 ? 128 : kValueDepth <= 128 ? 80 : 64;
  // Places for tiles of keys, and as many of values.
  static constexpr int SharedBytes(int keys, int places) {
    return 2 * (kRows * kDepth + places * keys * (kDepth + kValueDepth)) + 16 * (1 + 2 * places);
  }
  static constexpr int kMostSharedBytes = 227 * 1024;
  static constexpr int ChooseKeys() {
    return SharedBytes(kMostKeys, 2) <= kMostSharedBytes ? kMostKeys : 64;
  }
  static constexpr int kKeys = ChooseKeys();
  static constexpr int kPlaces = SharedBytes(kKeys, 3) <= kMostSharedBytes ? 3 : 2;
  static constexpr int kSharedBytes = SharedBytes(kKeys, kPlaces);
  static_assert(kSharedBytes <= kMostSharedBytes);
  // Of a thread that copies and of one that computes.
  static constexpr int kFewRegisters = kWarpgroups == 2 ? 40 : 32;
  static constexpr int kRegisters = kWarpgroups == 2 ? 232 : 160;
  // Of tiles.
  static constexpr uint32_t kQueryBytes = 2 * kRows * kDepth;
  static constexpr uint32_t kKeyBytes = 2 * kKeys * kDepth;
  static constexpr uint32_t kValueBytes = 2 * kKeys * kValueDepth;
};

// The kernel.
template <class Body, class I>
struct AttentionWarpgroups {
  using Tiling = AttentionWarpgroupTiling<Body>;
  static constexpr int kKeys = Tiling::kKeys;
  static constexpr int kPlaces = Tiling::kPlaces;

  AttentionUnits<Body, I, Tiling::kRows> units;

  static void Launch(LaunchContext& context, const Body& body, const AttentionArgs& args);

  __device__ __forceinline__ void operator()() const {
    extern __shared__ __align__(kPanelAlignment) unsigned char panels[];
    Places places(panels);
    if (threadIdx.x == 0) {
      MakeBarrier(places.query.filled, 128);
      MakeBarrier(places.query.read, Tiling::kWarps);
      for (int i = 0; i < kPlaces; ++i) {
        for (const Place& place : {places.Key(i), places.Value(i)}) {
          MakeBarrier(place.filled, 128);
          MakeBarrier(place.read, Tiling::kWarps);
        }
      }
      FenceBarriers();
    }
    __syncthreads();
    if (threadIdx.x >= 32 * Tiling::kWarps) {
      GiveRegisters<Tiling::kFewRegisters>();
      WaitForKernelAhead();
      Copier{*this, places}.Run();
    } else {
      TakeRegisters<Tiling::kRegisters>();
      WaitForKernelAhead();
      Computer(*this, places).Run(*this);
    }
  }

 private:
  // A tile in shared memory, and the barriers for those who fill it and those who read it.
  struct Place {
    uint32_t bytes;
    uint32_t filled;
    uint32_t read;
  };
  struct Places {
    Place query;
    uint32_t barriers;

    __device__ __forceinline__ explicit Places(const void* shared) {
      const uint32_t begin = SharedAddress(shared);
      barriers = begin + Tiling::kQueryBytes + kPlaces * (Tiling::kKeyBytes + Tiling::kValueBytes);
      query = {begin, barriers, barriers + 8};
    }
    __device__ __forceinline__ Place Key(uint32_t i) const {
      const uint32_t barrier = barriers + 16 + 16 * i;
      return {query.bytes + Tiling::kQueryBytes + i * Tiling::kKeyBytes, barrier, barrier + 8};
    }
    __device__ __forceinline__ Place Value(uint32_t i) const {
      const uint32_t barrier = barriers + 16 + 16 * (kPlaces + i);
      return {
          query.bytes + Tiling::kQueryBytes + kPlaces * Tiling::kKeyBytes + i * Tiling::kValueBytes,
          barrier, barrier + 8};
    }
  };
  // Walks the places of keys or of values, in the order in which they are used. Phases of barriers
  // are counted by their parity.
  struct Turn {
    uint32_t place = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void Next() {
      if (++place == kPlaces) {
        place = 0;
        parity ^= 1;
      }
    }
  };

  // What a thread that copies keeps while it runs.
  struct Copier {
    const AttentionWarpgroups& kernel;
    const Places& places;

    __device__ __forceinline__ void Run() {
      Turn query{0, 1};
      Turn key{0, 1};
      Turn value{0, 1};  // All places are free.
      const Body& body = kernel.units.body;
      kernel.units.ForEach([&](const AttentionUnit<I>& unit) {
        if (!unit.has_keys()) return;
        WaitForPhase(places.query.read, query.parity);
        query.parity ^= 1;
        Fill<Tiling::kRows, Body::kDepth>(
            places.query, static_cast<int>(unit.rows.end - unit.rows.begin), [&](int r) {
              return body.QueryRow(unit.rows.sequence, unit.head, unit.rows.begin + r);
            });
        const auto count = [&](I at) {
          return static_cast<int>(unit.end_key - at < kKeys ? unit.end_key - at : kKeys);
        };
        const auto fill_keys = [&](I at) {
          const Place place = places.Key(key.place);
          WaitForPhase(place.read, key.parity);
          key.Next();
          Fill<kKeys, Body::kDepth>(place, count(at), [&](int r) {
            return body.KeyRow(unit.rows.sequence, unit.key_head, at + r);
          });
        };
        const auto fill_values = [&](I at) {
          const Place place = places.Value(value.place);
          WaitForPhase(place.read, value.parity);
          value.Next();
          Fill<kKeys, Body::kValueDepth>(place, count(at), [&](int r) {
            return body.ValueRow(unit.rows.sequence, unit.key_head, at + r);
          });
        };
        // Values are needed after the next tile's keys.
        fill_keys(unit.first_key);
#pragma unroll 1
        for (I at = unit.first_key; at < unit.end_key; at += kKeys) {
          if (at + kKeys < unit.end_key) fill_keys(at + kKeys);
          fill_values(at);
        }
      });
      // Copies end before their block.
      WaitForCopies<0>();
    }

    template <int kRows, int kChannels, class Row>
    __device__ __forceinline__ void Fill(const Place& place, int count, const Row& row) const {
      const int warp = static_cast<int>(threadIdx.x / kWarpThreads) % 4;
      if (CopyRows<kRows, kChannels, 4>(place.bytes, warp, count, row)) {
        ArriveAfterCopies(place.filled);
      } else {
        WaitForCopies<0>();
        Arrive(place.filled);
      }
    }
  };

  // What a thread that computes keeps while it runs.
  struct Computer {
    using Rows = AttentionFragments<Body, I, kKeys, Tiling::kValueDepth>;

    const Places& places;
    Rows rows;
    Turn key;
    Turn value;
    uint32_t query_parity = 0;

    __device__ __forceinline__ Computer(const AttentionWarpgroups& kernel, const Places& places)
        : places(places), rows(kernel.units.body, kernel.units.args) {}

    __device__ __forceinline__ void Run(const AttentionWarpgroups& kernel) {
      kernel.units.ForEach([&](const AttentionUnit<I>& unit) {
        rows.Begin(unit);
        if (unit.has_keys()) Attend();
        rows.Store();
      });
    }

    __device__ __forceinline__ void Attend() {
      float score[Rows::kScores];
      uint32_t weight[kKeys / 16][4];
      float shrink[2];
      I at = rows.unit.first_key;
      WaitForPhase(places.query.filled, query_parity);
      query_parity ^= 1;
      WaitForKeys();
      StartScores(score);
      WaitForProducts();
      HoldSums(score);
      KeysAreRead();
      rows.Weigh(score, at, shrink);
      Rows::Pack(score, weight);
      if (at + kKeys < rows.unit.end_key) WaitForKeys();
#pragma unroll 1
      for (at += kKeys; at < rows.unit.end_key; at += kKeys) {
        StartScores(score);
        StartMeans(weight);
        WaitForProducts<1>();
        HoldSums(score);
        KeysAreRead();
        rows.Weigh(score, at, shrink);
        // The compiler moves no products' wait over this one: weights are computed before it.
        if (at + kKeys < rows.unit.end_key) WaitForKeys();
        MeansAreThere();
        rows.Shrink(shrink);
        Rows::Pack(score, weight);
      }
      if (rows.lane == 0) Arrive(places.query.read);
      StartMeans(weight);
      MeansAreThere();
    }

    __device__ __forceinline__ void WaitForKeys() {
      WaitForPhase(places.Key(key.place).filled, key.parity);
      FenceSharedMemory();
    }
    // score = query · keyᵀ.
    __device__ __forceinline__ void StartScores(float (&score)[Rows::kScores]) {
      const Place place = places.Key(key.place);
      const uint32_t group = threadIdx.x / 128;
      const uint64_t a = SwizzledOperand(places.query.bytes + group * (64 * kRowBytes));
      const uint64_t b = SwizzledOperand(place.bytes);
      FenceProducts();
#pragma unroll
      for (int step = 0; step < Tiling::kSteps; ++step) {
        constexpr int kPanelSteps = kPanelChannels / 16;
        const int panel = step / kPanelSteps;
        const int inside = step % kPanelSteps * 32;
        MultiplyGroup<Rows::kPrecision>(score,
                                        a + (panel * (Tiling::kRows * kRowBytes) + inside) / 16,
                                        b + (panel * (kKeys * kRowBytes) + inside) / 16, step > 0);
      }
      CommitProducts();
    }
    __device__ __forceinline__ void KeysAreRead() {
      if (rows.lane == 0) Arrive(places.Key(key.place).read);
      key.Next();
    }

    // mean += weight · value.
    __device__ __forceinline__ void StartMeans(const uint32_t (&weight)[kKeys / 16][4]) {
      const Place place = places.Value(value.place);
      WaitForPhase(place.filled, value.parity);
      FenceSharedMemory();
      const uint64_t b = SwizzledOperand(place.bytes);
      FenceProducts();
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
#pragma unroll
        for (int p = 0; p < Rows::kPanels; ++p) {
          MultiplyGroup<Rows::kPrecision, true>(
              rows.mean[p], weight[step], b + (p * kKeys + step * 16) * (kRowBytes / 16), true);
        }
      }
      CommitProducts();
    }
    __device__ __forceinline__ void MeansAreThere() {
      WaitForProducts();
#pragma unroll
      for (int p = 0; p < Rows::kPanels; ++p) HoldSums(rows.mean[p]);
      if (rows.lane == 0) Arrive(places.Value(value.place).read);
      value.Next();
    }
  };
};

template <class Kernel, int kThreads>
__global__ void __launch_bounds__(kThreads, 1)
    AttentionWarpgroupsEntry(const __grid_constant__ Kernel kernel) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  kernel();
#endif
}

template <class Body, class I>
void AttentionWarpgroups<Body, I>::Launch(LaunchContext& context, const Body& body,
                                          const AttentionArgs& args) {
  AttentionWarpgroups kernel{{body, args}};
  const auto entry = reinterpret_cast<const void*>(
      &AttentionWarpgroupsEntry<AttentionWarpgroups, Tiling::kThreads>);
  // A block takes one unit after the other, and copies the next one's operands while it stores.
  const int64_t blocks =
      std::min<int64_t>(kernel.units.tiles * args.heads, LimitsOf(context).multiprocessors);
  LaunchKernel(context, entry, dim3(static_cast<uint32_t>(blocks)), Tiling::kSharedBytes, kernel,
               Tiling::kThreads);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_WGMMA_H_
