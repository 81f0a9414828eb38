// Chains of dense layers on Hopper's tensor cores. Each warp takes 16 rows through all layers on
// its own: they stay in shared memory as floats, and are split (dense_mma.h) on their way into
// registers. The weights, split when the model was compiled, stream past all warps of a block;
// where they fit into its shared memory, they stay there. For few rows of split floats the blocks
// of a cluster share the columns of every layer: each streams a part of the weights, and the warps
// that have the same rows write a layer's outputs to one another's shared memory.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_WGMMA_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_WGMMA_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/kernels/dense_shape.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/warp.h"
#include "sofie/runtime/kernels/wgmma.h"

namespace sofie::kernels {

// All constants of a kernel whose blocks have kWarpgroups groups of four warps that compute, and
// one whose first thread copies. A block has a multiprocessor to itself; kBlocks_ of them share the
// columns of every layer.
template <class Shape, int kWarpgroups_, int kBlocks_ = 1>
struct WarpgroupTiling {
  static constexpr int kWarpgroups = kWarpgroups_;
  static constexpr int kBlocks = kBlocks_;
  static constexpr int kParts = PartsOf(Shape::kPrecision);
  static constexpr int kLayers = Shape::kLayers;
  static constexpr int kWarps = 4 * kWarpgroups;
  static constexpr int kThreads = (kWarps + 4) * static_cast<int>(kWarpThreads);
  static constexpr int kTileRows = 16 * kWarps;
  static constexpr int kGroups = kTileRows / Shape::kRows;
  // Of 16 columns of a weight each, in one slice: few products need larger slices for the time
  // that it takes to go on to the next.
  static constexpr int kSteps = kParts == 3 ? 1 : 2;
  static constexpr int kSlice = 16 * kSteps;

  static constexpr int Inputs(int layer) { return Shape::kWidths[layer]; }
  // Of a block.
  static constexpr int Outputs(int layer) { return Shape::kWidths[layer + 1] / kBlocks; }
  static constexpr int Slices(int layer) { return (Inputs(layer) + kSlice - 1) / kSlice; }
  static constexpr int AllSlices() {
    int slices = 0;
    for (int i = 0; i < kLayers; ++i) slices += Slices(i);
    return slices;
  }
  // Floats from one row to the next: two rows that are read at once are in different banks.
  static constexpr int RowStride() {
    int widest = 0;
    for (int i = 0; i < kLayers; ++i) widest = std::max(widest, Slices(i) * kSlice);
    if (Shape::kRows == 1) widest = std::max(widest, Outputs(kLayers - 1));
    return widest % 32 == 0 ? widest + 16 : widest;
  }
  static constexpr int RowBytes() { return kTileRows * RowStride() * 4; }
  static constexpr int SliceBytes() {
    int most = 0;
    for (int i = 0; i < kLayers; ++i) most = std::max(most, Outputs(i) * kSlice * 2 * kParts);
    return most;
  }
  static constexpr int BiasBegin(int layer) {
    int begin = 0;
    for (int i = 0; i < layer; ++i) begin += Outputs(i);
    return begin;
  }
  // Outputs go to other blocks.
  static constexpr bool kExchanges = kBlocks > 1;
  static_assert(!kExchanges || kLayers > 1);
  // Of shared memory: slices of weights, rows, biases, two barriers for each warp that exchanges
  // rows and for each slice.
  static constexpr int SharedBytes(int slices) {
    return slices * (SliceBytes() + 16) + RowBytes() + 4 * BiasBegin(kLayers) +
           (kExchanges ? 16 * kWarps : 0);
  }
  // Slices in shared memory: all of them, or as many as fit.
  static constexpr int ChooseSlices() {
    int slices = 0;
    while (slices < AllSlices() && SharedBytes(slices + 1) <= 226 * 1024) ++slices;
    return slices;
  }
  static constexpr int kPlaces = ChooseSlices();
  static constexpr bool kStay = kPlaces == AllSlices();
  static constexpr bool kHasMemory = kPlaces >= 2 || kStay;

  // Registers of a thread: at launch, of one that copies, and of one that computes, which gets what
  // the others leave.
  static constexpr int kEvenRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kFewRegisters = 40;
  static constexpr int kRegisters =
      std::min((kEvenRegisters * (kWarpgroups + 1) - kFewRegisters) / kWarpgroups / 8 * 8, 240);
  // Products of 16 columns are summed by the tensor cores, which truncate, and then added by
  // rounding instructions.
  static constexpr bool kExact = Shape::kPrecision == Precision::kFloat32;
  // What one that computes needs, about: sums, split rows, addresses.
  static constexpr int NeededRegisters() {
    int widest = 0;
    for (int i = 0; i < kLayers; ++i) widest = std::max(widest, Outputs(i));
    return widest / 2 + (kExact ? 32 : 0) + 4 * kParts * kSteps + 28;
  }
  // Two slices can be in use while others are on their way, and registers are left for the rows of
  // one more slice and, if sums are exact, for as many of those.
  static constexpr bool Ahead(int panels) {
    return (kStay || kPlaces >= 4) && (!kExact || panels == 1) &&
           NeededRegisters() + 4 * kParts * kSteps + (kExact ? 32 : 0) <= kRegisters;
  }
};

// The most warpgroups for which a block has registers and shared memory.
template <class Shape, int kWarpgroups = 4>
constexpr int ChooseWarpgroups() {
  using Tiling = WarpgroupTiling<Shape, kWarpgroups>;
  if constexpr (kWarpgroups == 1 ||
                (Tiling::NeededRegisters() <= Tiling::kRegisters && Tiling::kHasMemory)) {
    return kWarpgroups;
  } else {
    return ChooseWarpgroups<Shape, kWarpgroups - 1>();
  }
}

// Blocks that share the columns of a shape with few rows: 64 columns of each layer for each of
// them, or a multiple. Only split floats have products enough, six for each pair, for their share
// to outweigh the exchange of a layer's outputs: one jet through ParticleNet on an H200 takes 118
// us with clusters and 122 without; with three products or one, 109 and 110, 98 and 97.
template <class Shape>
constexpr int BlocksOfCluster() {
  if (Shape::kPrecision != Precision::kFloat32 || Shape::kLayers == 1) return 1;
  int columns = 0;
  for (int i = 1; i <= Shape::kLayers; ++i) columns = std::gcd(columns, Shape::kWidths[i]);
  int blocks = std::min(columns / 64, 8);
  while (blocks > 1 && columns % (64 * blocks) != 0) --blocks;
  return blocks;
}

// True for shapes that the kernel below takes: a warp's 16 rows are one group or 16 of them, and a
// product has 64 columns. sofie/plan/split_weights.py knows the same.
template <class Shape>
constexpr bool FitsWarpgroups() {
  for (int i = 1; i <= Shape::kLayers; ++i) {
    if (Shape::kWidths[i] % 64 != 0) return false;
  }
  return Shape::kRows == 1 || Shape::kRows == 16;
}

// The kernel. Its blocks loop over the tiles of a panel of columns: of one of several, of the only
// one, or of a block's share of the columns.
template <class Body, class I, size_t K, class Shape, class Tiling>
struct DenseWarpgroups {
  static constexpr int kParts = Tiling::kParts;
  static constexpr int kSteps = Tiling::kSteps;
  static constexpr int kRows = Shape::kRows;
  static constexpr bool kExact = Tiling::kExact;

  Body body;
  IndexSpace<I, K> kept;
  DenseLayer layers[Shape::kLayers];
  I groups;
  uint32_t tiles;
  uint32_t columns;  // of the last layer, in all panels

  __device__ __forceinline__ void operator()() const {
    extern __shared__ __align__(128) unsigned char shared[];
    Block block(*this, shared);
    block.Run();
  }

 private:
  // What a thread of a block keeps while it runs.
  struct Block {
    const DenseWarpgroups& kernel;
    const uint32_t lane = threadIdx.x % kWarpThreads;
    const uint32_t warp = threadIdx.x / kWarpThreads;
    const uint32_t panel = blockIdx.y;
    const uint32_t slices;    // address of the places
    const uint32_t barriers;  // of each place: one for its bytes, one for its readers
    float* const rows;        // of the warp
    float* const biases;
    uint32_t place = 0;            // the next slice's
    uint32_t parity = 0;           // of its phase
    uint32_t exchange_parity = 0;  // of the next exchange's phase

    __device__ __forceinline__ Block(const DenseWarpgroups& kernel, unsigned char* shared)
        : kernel(kernel),
          slices(SharedAddress(shared)),
          barriers(
              SharedAddress(shared + Tiling::SharedBytes(Tiling::kPlaces) - 16 * Tiling::kPlaces)),
          rows(reinterpret_cast<float*>(shared + Tiling::kPlaces * Tiling::SliceBytes()) +
               warp * 16 * Tiling::RowStride()),
          biases(reinterpret_cast<float*>(shared + Tiling::kPlaces * Tiling::SliceBytes() +
                                          Tiling::RowBytes())) {}

    __device__ __forceinline__ void Run() {
      if (threadIdx.x == 0) {
        for (int i = 0; i < Tiling::kPlaces; ++i) {
          MakeBarrier(Filled(i), 1);
          MakeBarrier(Read(i), Tiling::kWarps);
        }
        for (int i = 0; Tiling::kExchanges && i < Tiling::kWarps; ++i) {
          MakeBarrier(InputsRead(i), Tiling::kBlocks);
          MakeBarrier(OutputsWritten(i), 1);
        }
        FenceBarriers();
      }
      CopyBiases(std::make_index_sequence<Shape::kLayers>());
      __syncthreads();
      if constexpr (Tiling::kExchanges) SynchronizeCluster();
      if (warp >= Tiling::kWarps) {
        if constexpr (Tiling::kWarpgroups > 1) GiveRegisters<Tiling::kFewRegisters>();
        if (threadIdx.x == 32 * Tiling::kWarps) CopySlices();
        WaitForKernelAhead();
      } else {
        if constexpr (Tiling::kWarpgroups > 1) TakeRegisters<Tiling::kRegisters>();
        WaitForKernelAhead();
        for (uint32_t t = blockIdx.x; t < kernel.tiles; t += gridDim.x) {
          const I first = static_cast<I>(t) * Tiling::kGroups + static_cast<I>(warp * 16 / kRows);
          Load(first);
          Layer<0>(first);
        }
      }
    }

    __device__ __forceinline__ uint32_t Filled(uint32_t i) const { return barriers + i * 16; }
    __device__ __forceinline__ uint32_t Read(uint32_t i) const { return barriers + i * 16 + 8; }
    // Barriers of the warps that have the same rows: all have read a layer's inputs; its outputs
    // are here, from all of them.
    __device__ __forceinline__ uint32_t InputsRead(uint32_t i) const {
      return barriers - 16 * Tiling::kWarps + i * 16;
    }
    __device__ __forceinline__ uint32_t OutputsWritten(uint32_t i) const {
      return InputsRead(i) + 8;
    }
    __device__ __forceinline__ void Next() {
      if (++place == Tiling::kPlaces) {
        place = 0;
        if constexpr (!Tiling::kStay) parity ^= 1;
      }
    }

    template <size_t... L>
    __device__ __forceinline__ void CopyBiases(std::index_sequence<L...>) {
      (CopyBias<static_cast<int>(L)>(), ...);
    }
    template <int kLayer>
    __device__ __forceinline__ void CopyBias() {
      const float* const bias = kernel.layers[kLayer].bias;
      for (int i = threadIdx.x; i < Tiling::Outputs(kLayer); i += Tiling::kThreads) {
        biases[Tiling::BiasBegin(kLayer) + i] =
            bias == nullptr ? 0.0f : bias[panel * Tiling::Outputs(kLayer) + i];
      }
    }

    // The copying thread: all slices, tile by tile; of weights that stay, once.
    __device__ __forceinline__ void CopySlices() {
      uint32_t rounds = (kernel.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
      if (Tiling::kStay) rounds = 1;
      parity = 1;  // The places are free.
#pragma unroll 1
      for (; rounds > 0; --rounds) CopyLayers(std::make_index_sequence<Shape::kLayers>());
    }
    template <size_t... L>
    __device__ __forceinline__ void CopyLayers(std::index_sequence<L...>) {
      (CopyLayer<static_cast<int>(L)>(), ...);
    }
    template <int kLayer>
    __device__ __forceinline__ void CopyLayer() {
      constexpr uint32_t kBytes = Tiling::Outputs(kLayer) * 32;  // of a part of 16 columns
      const uint32_t all =
          (kLayer == Shape::kLayers - 1 ? kernel.columns : Shape::kWidths[kLayer + 1]) * 32;
      const unsigned char* from =
          reinterpret_cast<const unsigned char*>(kernel.layers[kLayer].parts) + panel * kBytes;
#pragma unroll 1
      for (int slice = 0; slice < Tiling::Slices(kLayer); ++slice) {
        WaitForPhase(Read(place), parity);
        ArriveBeforeCopies(Filled(place), kBytes * kSteps * kParts);
        for (int i = 0; i < kSteps * kParts; ++i) {
          CopyBulk(slices + place * Tiling::SliceBytes() + i * kBytes, from, kBytes, Filled(place));
          from += all;
        }
        Next();
      }
    }

    // Fills the warp's rows with the body's elements. Rows beyond the last group are like those of
    // the last.
    __device__ __forceinline__ void Load(I first) {
      constexpr int kColumns = Tiling::Slices(0) * Tiling::kSlice;
      constexpr int kPasses = (kColumns + 31) / 32;
      // Elements of a lane that are on their way.
      constexpr int kMost = Tiling::kRegisters >= 150 ? 64 : 32;
      constexpr int kAtOnce = std::min(16, static_cast<int>(std::bit_floor(kMost / kPasses + 0u)));
      __syncwarp();
#pragma unroll 1
      for (int row = 0; row < 16; row += kAtOnce) {
        float value[kAtOnce][kPasses];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const I group = min(first + static_cast<I>((row + j) / kRows), kernel.groups - 1);
          const Indices<I, K> index = kernel.kept.At(group);
#pragma unroll
          for (int pass = 0; pass < kPasses; ++pass) {
            const int column = pass * kWarpThreads + lane;
            const bool inside = Shape::kInput % 32 == 0 || column < Shape::kInput;
            value[j][pass] =
                inside ? LoadElement(kernel.body, index, static_cast<I>((row + j) % kRows),
                                     static_cast<I>(column))
                       : 0.0f;
          }
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
          for (int pass = 0; pass < kPasses; ++pass) {
            const int column = pass * kWarpThreads + lane;
            if (kColumns % 32 == 0 || column < kColumns) {
              rows[(row + j) * Tiling::RowStride() + column] = value[j][pass];
            }
          }
        }
      }
      __syncwarp();
    }

    // A lane's share of the warp's rows in a slice, split.
    struct RowParts {
      uint32_t words[kSteps][kParts][4];
    };
    // A lane multiplies columns 4q … 4q + 3 of each 16, q = lane % 4, where the fragment's layout
    // has 2q, 2q + 1, 2q + 8 and 2q + 9: PartPlace does the same.
    __device__ __forceinline__ void ReadRows(RowParts& parts, int slice) const {
      const float* const from =
          rows + lane / 4 * Tiling::RowStride() + lane % 4 * 4 + slice * Tiling::kSlice;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float4 x =
              *reinterpret_cast<const float4*>(from + step * 16 + half * 8 * Tiling::RowStride());
          uint32_t low[kParts];
          uint32_t high[kParts];
          Split<Shape::kPrecision>(x.x, x.y, low);
          Split<Shape::kPrecision>(x.z, x.w, high);
#pragma unroll
          for (int p = 0; p < kParts; ++p) {
            parts.words[step][p][half] = low[p];
            parts.words[step][p][half + 2] = high[p];
          }
        }
      }
    }

    // This layer and those after it.
    template <int kLayer>
    __device__ __forceinline__ void Layer(I first) {
      constexpr int kPanels = Tiling::Outputs(kLayer) / 64;
      constexpr int kSlices = Tiling::Slices(kLayer);
      float sums[kPanels][32] = {};
#pragma unroll
      for (int panel = 0; panel < kPanels; ++panel) HoldSums(sums[panel]);
      if constexpr (Tiling::Ahead(kPanels)) {
        MultiplyAhead<kPanels, kSlices>(sums);
      } else {
        MultiplyOneByOne<kPanels, kSlices>(sums);
      }
      const float* const bias = biases + Tiling::BiasBegin(kLayer) + lane % 4 * 2;
      const bool relu = kernel.layers[kLayer].relu;
#pragma unroll
      for (int j = 0; j < 8 * kPanels; ++j) {
        const float2 b = *reinterpret_cast<const float2*>(bias + j * 8);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& x = sums[j / 8][j % 8 * 4 + e];
          x += e % 2 == 0 ? b.x : b.y;
          if (relu) x = x < 0.0f ? 0.0f : x;
        }
      }
      if constexpr (kLayer + 1 < Shape::kLayers) {
        static_assert(Tiling::Slices(kLayer + 1) * Tiling::kSlice == Shape::kWidths[kLayer + 1]);
        if constexpr (Tiling::kExchanges) {
          ExchangeRows<kPanels>(sums);
        } else {
          WriteRows<kPanels>(sums);
        }
        Layer<kLayer + 1>(first);
      } else if constexpr (kRows == 1) {
        WriteRows<kPanels>(sums);
        StoreRows(first);
      } else {
        StoreGroup<kPanels>(first, sums);
      }
    }

    // A layer's outputs take the place of its inputs.
    template <int kPanels>
    __device__ __forceinline__ void WriteRows(const float (&sums)[kPanels][32]) {
      float* const to = rows + lane / 4 * Tiling::RowStride() + lane % 4 * 2;
      __syncwarp();  // All lanes have read the inputs.
#pragma unroll
      for (int j = 0; j < 8 * kPanels; ++j) {
        const float* const x = &sums[j / 8][j % 8 * 4];
        *reinterpret_cast<float2*>(to + j * 8) = {x[0], x[1]};
        *reinterpret_cast<float2*>(to + j * 8 + 8 * Tiling::RowStride()) = {x[2], x[3]};
      }
      __syncwarp();
    }

    // The same where each block has some of the outputs: they go to all of them.
    template <int kPanels>
    __device__ __forceinline__ void ExchangeRows(const float (&sums)[kPanels][32]) {
      const uint32_t to = SharedAddress(rows + lane / 4 * Tiling::RowStride() +
                                        panel * (64 * kPanels) + lane % 4 * 2);
      MeetWarps();
      if (lane == 0) {
        constexpr uint32_t kBytes = 16 * 64 * kPanels * 4 * Tiling::kBlocks;
        ArriveBeforeCopies(OutputsWritten(warp), kBytes);
      }
#pragma unroll
      for (uint32_t block = 0; block < Tiling::kBlocks; ++block) {
        const uint32_t there = AddressInBlock(to, block);
        const uint32_t written = AddressInBlock(OutputsWritten(warp), block);
#pragma unroll
        for (int j = 0; j < 8 * kPanels; ++j) {
          const float* const x = &sums[j / 8][j % 8 * 4];
          StoreInCluster(there + j * 32, written, x[0], x[1]);
          StoreInCluster(there + j * 32 + 32 * Tiling::RowStride(), written, x[2], x[3]);
        }
      }
      WaitForPhase<true>(OutputsWritten(warp), exchange_parity);
      exchange_parity ^= 1;
    }
    // Waits until the warps that have the same rows have read them.
    __device__ __forceinline__ void MeetWarps() const {
      __syncwarp();
      if (lane < Tiling::kBlocks) ArriveInCluster(AddressInBlock(InputsRead(warp), lane));
      WaitForPhase<true>(InputsRead(warp), exchange_parity);
    }

    // Waits for the next slice: its right operand.
    __device__ __forceinline__ uint64_t NextSlice() const {
      WaitForPhase(Filled(place), parity);
      return RightOperand(slices + place * Tiling::SliceBytes());
    }
    // Starts sums (+)= rows · weightᵀ over the columns of a slice, for kSome of a layer's panels of
    // 64 outputs; exact sums are those of the slice alone. Nothing is to be written to registers
    // that the products read, `a` and `sums`, before they have ended.
    template <int kPanels, int kSome>
    __device__ __forceinline__ void Start(float (&sums)[kSome][32], const RowParts& a,
                                          uint64_t weights, int first_panel = 0) const {
      using Products = PartProducts<kParts>;
      static_assert(!kExact || kSteps == 1);
      FenceProducts();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int product = 0; product < Products::kCount; ++product) {
          const PartProduct at = Products::At(product);
#pragma unroll
          for (int panel = 0; panel < kSome; ++panel) {
            MultiplyGroup<Shape::kPrecision>(
                sums[panel], a.words[step][at.a],
                weights + Offset<kPanels>(step, at.b, first_panel + panel), !kExact || product > 0);
          }
        }
      }
      CommitProducts();
    }
    // No product reads the slice at `used` any more.
    __device__ __forceinline__ void Release(uint32_t used) const {
      if constexpr (!Tiling::kStay) {
        if (lane == 0) Arrive(Read(used));
      }
    }

    // sums += rows · weightᵀ over all slices.
    template <int kPanels, int kSlices>
    __device__ __forceinline__ void MultiplyOneByOne(float (&sums)[kPanels][32]) {
#pragma unroll 1
      for (int slice = 0; slice < kSlices; ++slice) {
        RowParts parts;
        ReadRows(parts, slice);
        const uint64_t weights = NextSlice();
        if constexpr (kExact) {
          float sixteen[1][32] = {};
#pragma unroll
          for (int panel = 0; panel < kPanels; ++panel) {
            Start<kPanels>(sixteen, parts, weights, panel);
            WaitForProducts();
#pragma unroll
            for (int i = 0; i < 32; ++i) sums[panel][i] += sixteen[0][i];
          }
        } else {
          Start<kPanels>(sums, parts, weights);
          WaitForProducts();
        }
        Release(place);
        Next();
      }
    }
    // The same two by two: the rows of one slice are read and split while the tensor cores work on
    // the other.
    template <int kPanels, int kSlices>
    __device__ __forceinline__ void MultiplyAhead(float (&sums)[kPanels][32]) {
      RowParts parts[2];
      float sixteen[2][kPanels][32] = {};  // if they are exact
      uint32_t used[2] = {};
      const auto start = [&]<int kWhich>(int slice) {
        ReadRows(parts[kWhich], slice);
        const uint64_t weights = NextSlice();
        if constexpr (kExact) {
          Start<kPanels>(sixteen[kWhich], parts[kWhich], weights);
        } else {
          Start<kPanels>(sums, parts[kWhich], weights);
        }
        used[kWhich] = place;
        Next();
      };
      const auto end = [&]<int kWhich, int kPending>() {
        WaitForProducts<kPending>();
        Release(used[kWhich]);
        if constexpr (kExact) {
#pragma unroll
          for (int panel = 0; panel < kPanels; ++panel) {
            HoldSums(sixteen[kWhich][panel]);
#pragma unroll
            for (int i = 0; i < 32; ++i) sums[panel][i] += sixteen[kWhich][panel][i];
          }
        }
      };
#pragma unroll 1
      for (int slice = 0; slice + 1 < kSlices; slice += 2) {
        start.template operator()<0>(slice);
        // Sums that are read apart from one another must not be on their way from one round to the
        // next: the compiler would let no products overlap.
        if (!kExact && slice > 0) end.template operator()<1, 1>();
        start.template operator()<1>(slice + 1);
        end.template operator()<0, 1>();
        if constexpr (kExact) end.template operator()<1, 0>();
      }
      if constexpr (kSlices % 2 == 1) {
        start.template operator()<0>(kSlices - 1);
        if constexpr (!kExact && kSlices > 1) end.template operator()<1, 1>();
        end.template operator()<0, 0>();
      } else if constexpr (!kExact) {
        end.template operator()<1, 0>();
      }
    }
    // Of a part's 64 columns in a slice, in units of 16 bytes.
    template <int kPanels>
    __device__ __forceinline__ static constexpr uint64_t Offset(int step, int part, int panel) {
      return static_cast<uint64_t>(((step * kParts + part) * kPanels + panel) * (64 * 32 / 16));
    }

    // Row by row, so that neighbouring lanes have neighbouring columns.
    __device__ __forceinline__ void StoreRows(I first) {
#pragma unroll 4
      for (int row = 0; row < 16; ++row) {
        const I group = first + static_cast<I>(row);
        if (group >= kernel.groups) break;
        const Indices<I, K> index = kernel.kept.At(group);
#pragma unroll
        for (int begin = 0; begin < Tiling::Outputs(Shape::kLayers - 1); begin += kWarpThreads) {
          Store(index, begin + lane, rows[row * Tiling::RowStride() + begin + lane]);
        }
      }
    }

    template <int kPanels>
    __device__ __forceinline__ void StoreGroup(I first, const float (&sums)[kPanels][32]) {
      using Combine = typename Body::Combine;
      const Combine combine;
      float value[8 * kPanels][2];
#pragma unroll
      for (int j = 0; j < 8 * kPanels; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          value[j][e] = combine(sums[j / 8][j % 8 * 4 + e], sums[j / 8][j % 8 * 4 + e + 2]);
        }
      }
      // A lane ends with all rows of an eighth of the columns.
      ShareColumns<4 * kPanels, 16>(value, combine);
      ShareColumns<2 * kPanels, 8>(value, combine);
      ShareColumns<kPanels, 4>(value, combine);
      if (first >= kernel.groups) return;
      const Indices<I, K> index = kernel.kept.At(first);
      const uint32_t begin = lane / 4 * (8 * kPanels) + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < kPanels; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          Store(index, begin + j * 8 + e, value[j][e]);
        }
      }
    }

    // Of 2 kHalf columns, a lane gives half to the lane that has other rows, and gets the other
    // half's from it.
    template <int kHalf, int kMask, int kAll, class Combine>
    __device__ __forceinline__ void ShareColumns(float (&value)[kAll][2],
                                                 const Combine& combine) const {
      const bool upper = (lane & kMask) != 0;
#pragma unroll
      for (int j = 0; j < kHalf; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float give = upper ? value[j][e] : value[j + kHalf][e];
          const float keep = upper ? value[j + kHalf][e] : value[j][e];
          value[j][e] = combine(keep, ShuffleXor(give, kMask));
        }
      }
    }

    __device__ __forceinline__ void Store(const Indices<I, K>& index, uint32_t column,
                                          float value) const {
      StoreElement(kernel.body, index,
                   static_cast<I>(panel * Tiling::Outputs(Shape::kLayers - 1) + column), value);
    }
  };
};

template <class Kernel, int kThreads>
__global__ void __launch_bounds__(kThreads, 1)
    DenseWarpgroupsEntry(const __grid_constant__ Kernel kernel) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  kernel();
#endif
}

// Puts the kernel into the context's queue, for panels of Shape::kOutput of `columns` columns, or
// for a cluster's blocks that share them. Every weight has its parts.
template <class Shape, class Tiling, class I, class Body, size_t K, size_t L>
void LaunchDenseWarpgroups(LaunchContext& context, const Body& body,
                           const std::array<int64_t, K>& kept,
                           const std::array<DenseLayer, L>& layers, int64_t columns) {
  static_assert(L == Shape::kLayers);
  static_assert(Tiling::kHasMemory);
  for (const DenseLayer& layer : layers) {
    if (reinterpret_cast<uintptr_t>(layer.parts) % 16 != 0) {
      throw ArgumentError("Dense: a weight's parts are not 16-byte aligned");
    }
  }
  using Kernel = DenseWarpgroups<Body, I, K, Shape, Tiling>;
  const int64_t tiles = (Elements(kept) + Tiling::kGroups - 1) / Tiling::kGroups;
  Kernel kernel = {.body = body,
                   .kept = IndexSpace<I, K>(kept),
                   .layers = {},
                   .groups = static_cast<I>(Elements(kept)),
                   .tiles = static_cast<uint32_t>(tiles),
                   .columns = static_cast<uint32_t>(columns)};
  std::copy(layers.begin(), layers.end(), kernel.layers);
  const auto entry = reinterpret_cast<const void*>(&DenseWarpgroupsEntry<Kernel, Tiling::kThreads>);
  constexpr int kBytes = Tiling::SharedBytes(Tiling::kPlaces);
  const int64_t panels = columns / Tiling::Outputs(Shape::kLayers - 1);
  const int64_t at_once = LimitsOf(context).multiprocessors;
  const int64_t blocks = std::min(tiles, (at_once + panels - 1) / panels);
  LaunchKernel(context, entry, dim3(static_cast<uint32_t>(blocks), static_cast<uint32_t>(panels)),
               kBytes, kernel, Tiling::kThreads, Tiling::kBlocks);
}

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_WGMMA_H_
