// Chains of dense layers on a GPU's tensor cores. A block takes a tile of rows through all layers:
// the rows stay in shared memory, split into 16-bit parts (dense_mma.h), and the weights stream
// past them in slices.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_GPU_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_GPU_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "sofie/runtime/error.h"
#include "sofie/runtime/kernels/dense_mma.h"
#include "sofie/runtime/kernels/dense_shape.h"
#include "sofie/runtime/kernels/dense_wgmma.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/kernels/launch.h"
#include "sofie/runtime/kernels/warp.h"

namespace sofie::kernels {

constexpr int DivideUp(int a, int b) { return (a + b - 1) / b; }
constexpr int RoundUp(int a, int b) { return DivideUp(a, b) * b; }

// How the eight warps of a block share a layer's output of `rows` x `columns`: in a grid, each
// warp with row_tiles x column_tiles products of 16 x 8 elements.
struct WarpGrid {
  int rows;
  int columns;
  int row_tiles;
  int column_tiles;
};
constexpr WarpGrid ChooseWarpGrid(int rows, int columns, int rows_together) {
  constexpr int kWarps = static_cast<int>(kBlockThreads / kWarpThreads);
  WarpGrid best = {};
  int lowest = 0;
  for (int r = 1; r <= kWarps; r *= 2) {
    if (rows % (r * rows_together) != 0) continue;
    const WarpGrid grid = {r, kWarps / r, rows / (16 * r), DivideUp(columns / 8, kWarps / r)};
    // In cycles of a multiprocessor, about: of the tensor cores, of shared memory, of other
    // instructions; they overlap in part.
    const int products = grid.row_tiles * grid.column_tiles;
    const int cost = 78 * products + 4 * (12 * grid.row_tiles + 4 * grid.column_tiles) +
                     10 * products + 24 * grid.column_tiles;
    if (lowest == 0 || cost < lowest) {
      lowest = cost;
      best = grid;
    }
  }
  return best;
}

// All constants of a kernel that takes tiles of kTileRows rows.
template <class Shape, int kTileRows_, int kSlice_, int kFewSlices>
struct DenseTiling {
  static constexpr int kTileRows = kTileRows_;
  // Columns of a weight that are in one slice.
  static constexpr int kSlice = kSlice_;
  static constexpr int kParts = PartsOf(Shape::kPrecision);
  static constexpr int kLayers = Shape::kLayers;
  static constexpr int kGroups = kTileRows / Shape::kRows;

  static constexpr int Inputs(int layer) { return Shape::kWidths[layer]; }
  static constexpr int Outputs(int layer) { return Shape::kWidths[layer + 1]; }
  static constexpr int Slices(int layer) { return DivideUp(Inputs(layer), kSlice); }
  static constexpr int AllSlices() {
    int slices = 0;
    for (int i = 0; i < kLayers; ++i) slices += Slices(i);
    return slices;
  }
  static constexpr WarpGrid Grid(int layer) {
    return ChooseWarpGrid(kTileRows, Outputs(layer), layer == kLayers - 1 ? GroupRows() : 16);
  }
  // Rows that one warp reduces.
  static constexpr int GroupRows() { return std::max(Shape::kRows, 16); }

  // A row of the tile in 16-bit elements: the widest input, and padding against bank conflicts.
  static constexpr int TileStride() {
    int widest = 0;
    for (int i = 0; i < kLayers; ++i) widest = std::max(widest, Slices(i) * kSlice);
    return widest + 8;
  }
  static constexpr int PartBytes() { return kTileRows * TileStride() * 2; }
  static constexpr int SliceFloats() {
    int most = 0;
    for (int i = 0; i < kLayers; ++i) {
      most = std::max(most, Grid(i).columns * Grid(i).column_tiles * 8 * kSlice);
    }
    return most;
  }
  static constexpr int BiasBegin(int layer) {
    int begin = 0;
    for (int i = 0; i < layer; ++i) begin += Outputs(i);
    return begin;
  }
  // Shared memory of a block with room for `slices` slices of weights.
  static constexpr int SharedBytes(int slices) {
    return kParts * PartBytes() + 4 * (slices * SliceFloats() + BiasBegin(kLayers));
  }
  // Accumulators of a thread.
  static constexpr int Accumulators() {
    int most = 0;
    for (int i = 0; i < kLayers; ++i) {
      most = std::max(most, 4 * Grid(i).row_tiles * Grid(i).column_tiles);
    }
    return most;
  }
  // Blocks that are to share a multiprocessor, by their registers and memory.
  static constexpr int Blocks() {
    return Accumulators() > 64 || SharedBytes(kFewSlices) > 112 * 1024 ? 1 : 2;
  }
  static constexpr int kBlocks = Blocks();
  // Slices in shared memory, if it is large enough: one in use, the others on their way, the more
  // the less of their latency is left.
  static constexpr int MostSlices() {
    const int limit = (Blocks() == 1 ? 224 : 112) * 1024;
    int most = kFewSlices;
    while (most < 16 && most <= AllSlices() && SharedBytes(most + 1) <= limit) ++most;
    return most;
  }
  static constexpr int kMostSlices = MostSlices();
};

// Columns of a slice for large tiles: with one product for each pair of elements, a barrier for
// every 16 would take longer than the products.
template <class Shape>
constexpr int LargeSlice() {
  return PartsOf(Shape::kPrecision) == 1 ? 32 : 16;
}

// The most rows, up to kTileRows, for which a block has registers enough, and for few registers at
// most kKilobytes of shared memory.
template <class Shape, int kTileRows, int kKilobytes>
constexpr int TileRowsWithin() {
  using Tiling = DenseTiling<Shape, kTileRows, LargeSlice<Shape>(), 3>;
  if constexpr (kTileRows <= std::max(Shape::kRows, 16)) {
    return std::max(Shape::kRows, 16);
  } else if constexpr (kTileRows % Shape::kRows == 0 && Tiling::Accumulators() <= 96 &&
                       Tiling::SharedBytes(3) <=
                           (Tiling::Accumulators() > 64 ? 224 : kKilobytes) * 1024) {
    return kTileRows;
  } else {
    return TileRowsWithin<Shape, kTileRows - 32, kKilobytes>();
  }
}
// Two blocks for each multiprocessor, if their tiles are not too small.
template <class Shape>
constexpr int ChooseTileRows() {
  constexpr int kRowsOfTwo = TileRowsWithin<Shape, 128, 112>();
  return kRowsOfTwo >= 64 ? kRowsOfTwo : TileRowsWithin<Shape, 128, 224>();
}

// The outputs of a single layer of single rows are cut into panels of equal width, up to kMost
// columns: the shape that computes one of them. Other shapes have one panel.
template <class Shape, int kMost>
struct DensePanel {
  using Type = Shape;
};
template <int kMost, Precision kPrecision, int kInput, int kOutput>
struct DensePanel<DenseShape<1, kPrecision, kInput, kOutput>, kMost> {
  static constexpr int Width() {
    int width = kMost;
    while (kOutput % width != 0) width -= 8;
    return width;
  }
  using Type = DenseShape<1, kPrecision, kInput, Width()>;
};

// Tiles of many rows need fewer reads of the weights, tiles of few rows occupy more blocks.
template <class Shape>
using LargeTiling = DenseTiling<Shape, ChooseTileRows<Shape>(), LargeSlice<Shape>(), 3>;
template <class Shape>
using SmallTiling = DenseTiling<Shape, std::max(Shape::kRows, 16), 32, 4>;

// The kernel. Its blocks loop over the tiles of a panel, and the slices of the next tile are on
// their way while this one ends.
template <class Body, class I, size_t K, class Shape, class Tiling>
struct DenseTiles {
  static constexpr int kParts = Tiling::kParts;
  static constexpr int kRows = Shape::kRows;

  Body body;
  IndexSpace<I, K> kept;
  DenseLayer layers[Shape::kLayers];
  I groups;
  uint32_t tiles;
  int slices;     // in shared memory: Tiling::kMostSlices, or 2
  bool constant;  // all weights and biases are

  __device__ __forceinline__ void operator()() const {
    extern __shared__ __align__(128) unsigned char shared[];
    Block block(*this, shared);
    block.Run();
  }

 private:
  // What a thread of a block keeps while it runs.
  struct Block {
    const DenseTiles& kernel;
    unsigned char* const tile;
    float* const weights;
    float* const biases;
    const uint32_t thread = threadIdx.x;
    const uint32_t lane = thread % kWarpThreads;
    const uint32_t warp = thread / kWarpThreads;
    const uint32_t panel = blockIdx.y;
    uint32_t next_tile;   // whose slices are fetched
    int next_slice = 0;   // of that tile
    int fetch_place = 0;  // in shared memory
    int use_place = 0;
    const float* use = nullptr;  // the slice in use

    __device__ __forceinline__ Block(const DenseTiles& kernel, unsigned char* shared)
        : kernel(kernel),
          tile(shared),
          weights(reinterpret_cast<float*>(shared + kParts * Tiling::PartBytes())),
          biases(weights + kernel.slices * Tiling::SliceFloats()),
          next_tile(blockIdx.x) {}

    __device__ __forceinline__ void Run() {
      if (!kernel.constant) WaitForKernelAhead();
      for (int i = 1; i < kernel.slices; ++i) Fetch();
      CopyBiases(std::make_index_sequence<Shape::kLayers>());
      if (kernel.constant) WaitForKernelAhead();
      for (uint32_t t = blockIdx.x; t < kernel.tiles; t += gridDim.x) {
        // The last layer of the tile before has been read.
        __syncthreads();
        const I first = static_cast<I>(t) * Tiling::kGroups;
        Load(first);
        Layer<0>(first);
      }
    }

    template <size_t... L>
    __device__ __forceinline__ void CopyBiases(std::index_sequence<L...>) {
      (CopyBias<static_cast<int>(L)>(), ...);
    }
    template <int kLayer>
    __device__ __forceinline__ void CopyBias() {
      const float* const bias = kernel.layers[kLayer].bias;
      if (thread < Tiling::Outputs(kLayer)) {
        biases[Tiling::BiasBegin(kLayer) + thread] =
            bias == nullptr ? 0.0f : bias[panel * Tiling::Outputs(kLayer) + thread];
      }
    }

    // Starts to copy the next slice, if there is one.
    __device__ __forceinline__ void Fetch() {
      if (next_tile < kernel.tiles) {
        FetchOf<0>(next_slice);
        if (++next_slice == Tiling::AllSlices()) {
          next_slice = 0;
          next_tile += gridDim.x;
        }
        if (++fetch_place == kernel.slices) fetch_place = 0;
      }
      CommitCopies();
    }
    // Slice `slice`, counted from the layer's first, wherever it is.
    template <int kLayer>
    __device__ __forceinline__ void FetchOf(int slice) {
      if constexpr (kLayer + 1 < Shape::kLayers) {
        if (slice >= Tiling::Slices(kLayer)) {
          return FetchOf<kLayer + 1>(slice - Tiling::Slices(kLayer));
        }
      }
      constexpr int kInputs = Tiling::Inputs(kLayer);
      // The bytes of one copy must be aligned in each row.
      constexpr int kFloats = kInputs % 4 == 0 ? 4 : 1;
      constexpr int kCopies = Tiling::kSlice / kFloats;
      constexpr int kAll = Tiling::Outputs(kLayer) * kCopies;
      const float* const weight =
          kernel.layers[kLayer].weight + panel * (Tiling::Outputs(kLayer) * kInputs);
      const uint32_t to = SharedAddress(weights + fetch_place * Tiling::SliceFloats());
#pragma unroll
      for (int begin = 0; begin < kAll; begin += kBlockThreads) {
        const int i = begin + thread;
        if (kAll % kBlockThreads != 0 && i >= kAll) break;
        const int n = i / kCopies;
        const int k = i % kCopies * kFloats;
        const int column = slice * Tiling::kSlice + k;
        const bool inside = kInputs % Tiling::kSlice == 0 || column < kInputs;
        const float* const from = weight + (inside ? n * kInputs + column : 0);
        const uint32_t place = to + (n * Tiling::kSlice + Swizzle(n, k)) * sizeof(float);
        const int bytes = inside ? kFloats * sizeof(float) : 0;
        if constexpr (kFloats == 4) {
          CopyAsync16(place, from, bytes);
        } else {
          CopyAsync4(place, from, bytes);
        }
      }
    }
    // Where column k of row n of a slice is in the row. Two rows are read at once, 16 columns each:
    // they must be in different banks.
    __device__ __forceinline__ static uint32_t Swizzle(uint32_t n, uint32_t k) {
      return Tiling::kSlice % 32 == 0 ? k ^ (n % 2 * 16) : k;
    }
    // Goes on to the next slice, when all have read what they need of this one.
    __device__ __forceinline__ void Advance() {
      if (kernel.slices == Tiling::kMostSlices) {
        WaitForCopies<Tiling::kMostSlices - 2>();
      } else {
        WaitForCopies<0>();
      }
      // The slice is there for all, and the one before is free to be overwritten.
      __syncthreads();
      Fetch();
      use = weights + use_place * Tiling::SliceFloats();
      if (++use_place == kernel.slices) use_place = 0;
    }

    // Where the word with columns `column` and `column` + 1 of a row is in each part of the tile.
    // A lane multiplies columns 4q … 4q + 3 of each 16, q = lane % 4: so that it reads its share of
    // a weight at once, the tile has them where the fragment's layout has 2q, 2q + 1, 2q + 8 and
    // 2q + 9.
    __device__ __forceinline__ static uint32_t WordOf(uint32_t row, uint32_t column) {
      const uint32_t word = column % 16 / 2;
      return row * (Tiling::TileStride() / 2) + column / 16 * 8 + word % 2 * 4 + word / 2;
    }
    __device__ __forceinline__ void Put(uint32_t row, uint32_t column, float x, float y) {
      uint32_t words[kParts];
      Split<Shape::kPrecision>(x, y, words);
      uint32_t* const to = reinterpret_cast<uint32_t*>(tile) + WordOf(row, column);
#pragma unroll
      for (int p = 0; p < kParts; ++p) to[p * (Tiling::PartBytes() / 4)] = words[p];
    }
    // Zeros in the columns from `kBegin` that the slices of a layer's inputs reach.
    template <int kBegin, int kEnd>
    __device__ __forceinline__ void Clear() {
      constexpr int kWords = (kEnd - kBegin) / 2;
      for (int i = thread; i < Tiling::kTileRows * kWords; i += kBlockThreads) {
        Put(i / kWords, kBegin + i % kWords * 2, 0.0f, 0.0f);
      }
    }

    // Short rows lie side by side in a warp, as long as its lanes have two columns each.
    static constexpr int RowsSideBySide(int rows) {
      int most = 1;
      while (rows % (2 * most) == 0 &&
             static_cast<int>(kWarpThreads) / (2 * most) * 2 >= Shape::kInput) {
        most *= 2;
      }
      return most;
    }
    // Such that a thread has up to 32 or 16 elements on their way.
    static constexpr int RowsAtOnce(int rows, int passes) {
      int most = 1;
      for (int i = 2; i <= rows && 2 * i * passes <= 32 / Tiling::kBlocks; ++i) {
        if (rows % i == 0) most = i;
      }
      return most;
    }
    // Fills the tile with the body's elements: a warp takes whole rows, several at once.
    __device__ __forceinline__ void Load(I first) {
      constexpr int kColumns = Tiling::Slices(0) * Tiling::kSlice;
      constexpr int kWarps = kBlockThreads / kWarpThreads;
      constexpr int kSideBySide = RowsSideBySide(Tiling::kTileRows / kWarps);
      constexpr int kLanes = kWarpThreads / kSideBySide;
      constexpr int kPasses = DivideUp(Shape::kInput, 2 * kLanes);
      constexpr int kLoaded = std::min(2 * kLanes * kPasses, kColumns);
      constexpr int kAtOnce = RowsAtOnce(Tiling::kTileRows / kWarps / kSideBySide, kPasses);
      constexpr int kRowsOfWarp = kAtOnce * kSideBySide;
      if constexpr (kLoaded < kColumns) Clear<kLoaded, kColumns>();
      for (int begin = warp * kRowsOfWarp; begin < Tiling::kTileRows;
           begin += kWarps * kRowsOfWarp) {
        const int row = begin + lane / kLanes;
        const int first_column = lane % kLanes * 2;
        float value[kAtOnce][kPasses][2];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int at = row + j * kSideBySide;
          const I group = first + static_cast<I>(at / kRows);
          const bool valid = group < kernel.groups;
          const Indices<I, K> index = kept(valid ? group : I{0});
#pragma unroll
          for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int column = pass * (2 * kLanes) + first_column + e;
              value[j][pass][e] = valid && column < Shape::kInput
                                      ? LoadElement(kernel.body, index, static_cast<I>(at % kRows),
                                                    static_cast<I>(column))
                                      : 0.0f;
            }
          }
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
          for (int pass = 0; pass < kPasses; ++pass) {
            const int column = pass * (2 * kLanes) + first_column;
            if (2 * kLanes * kPasses <= kColumns || column < kColumns) {
              Put(row + j * kSideBySide, column, value[j][pass][0], value[j][pass][1]);
            }
          }
        }
      }
    }

    // This layer and those after it.
    template <int kLayer>
    __device__ __forceinline__ void Layer(I first) {
      constexpr WarpGrid kGrid = Tiling::Grid(kLayer);
      constexpr int kRowTiles = kGrid.row_tiles;
      constexpr int kColumnTiles = kGrid.column_tiles;
      const uint32_t first_row = warp / kGrid.columns * (kRowTiles * 16);
      const uint32_t first_column = warp % kGrid.columns * (kColumnTiles * 8);
      // Of the lane's elements in fragments of the tile, and in rows of a slice.
      const uint32_t fragment =
          SharedAddress(tile) +
          ((first_row + lane % 16) * Tiling::TileStride() + lane / 16 * 8) * 2;
      const uint32_t row_of_slice = first_column + lane / 4;
      float sums[kRowTiles][kColumnTiles][4] = {};
      constexpr int kSteps = Tiling::Slices(kLayer) * (Tiling::kSlice / 16);
      WeightParts<kColumnTiles> b;
      const auto read = [&](int step) {
        const int k = step * 16 % Tiling::kSlice;
        if (k == 0) Advance();
        ReadWeights(b, row_of_slice, k);
      };
      if constexpr (Tiling::kBlocks == 1) {
        // Weights are read and split while the tensor cores work.
        read(0);
        for (int step = 0; step < kSteps; ++step) {
          const WeightParts<kColumnTiles> now = b;
          MultiplySixteen<0, kRowTiles / 2>(sums, fragment + step * 32, now);
          if (step + 1 < kSteps) read(step + 1);
          MultiplySixteen<kRowTiles / 2, kRowTiles>(sums, fragment + step * 32, now);
        }
      } else {
        // The tensor cores work for the other block meanwhile.
        for (int step = 0; step < kSteps; ++step) {
          read(step);
          MultiplySixteen<0, kRowTiles>(sums, fragment + step * 32, b);
        }
      }
      const float* const bias = biases + Tiling::BiasBegin(kLayer);
      const bool relu = kernel.layers[kLayer].relu;
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        const uint32_t column = first_column + j * 8 + lane % 4 * 2;
        const bool valid = IsValid<kLayer>(column);
        const float2 b = valid ? *reinterpret_cast<const float2*>(bias + column) : float2{};
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& x = sums[i][j][e];
            x += e % 2 == 0 ? b.x : b.y;
            if (relu) x = x < 0.0f ? 0.0f : x;
          }
        }
      }
      if constexpr (kLayer + 1 < Shape::kLayers) {
        // All have read the inputs: the outputs take their place.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int j = 0; j < kColumnTiles; ++j) {
            const uint32_t row = first_row + i * 16 + lane / 4;
            const uint32_t column = first_column + j * 8 + lane % 4 * 2;
            if (IsValid<kLayer>(column)) {
              Put(row, column, sums[i][j][0], sums[i][j][1]);
              Put(row + 8, column, sums[i][j][2], sums[i][j][3]);
            }
          }
        }
        constexpr int kEnd = Tiling::Slices(kLayer + 1) * Tiling::kSlice;
        if constexpr (kEnd > Tiling::Outputs(kLayer)) Clear<Tiling::Outputs(kLayer), kEnd>();
        Layer<kLayer + 1>(first);
      } else if constexpr (kRows == 1) {
        StoreRows<kRowTiles, kColumnTiles>(first, first_row, first_column, sums);
      } else {
        StoreGroups<kRowTiles, kColumnTiles>(first, first_row, first_column, sums);
      }
    }

    // Columns beyond a layer's outputs are there if the warps cannot share the columns evenly.
    template <int kLayer>
    __device__ __forceinline__ static bool IsValid(uint32_t column) {
      constexpr WarpGrid kGrid = Tiling::Grid(kLayer);
      return kGrid.columns * kGrid.column_tiles * 8 == Tiling::Outputs(kLayer) ||
             column < Tiling::Outputs(kLayer);
    }

    // A lane's share of 16 columns of a weight, split.
    template <int kColumnTiles>
    struct WeightParts {
      uint32_t words[kColumnTiles][2][kParts];
    };
    // Columns k … k + 15 of the slice in use.
    template <int kColumnTiles>
    __device__ __forceinline__ void ReadWeights(WeightParts<kColumnTiles>& b, uint32_t row,
                                                uint32_t k) const {
      const float* const from = use + row * Tiling::kSlice + Swizzle(row, k) + lane % 4 * 4;
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        const float4 w = *reinterpret_cast<const float4*>(from + j * 8 * Tiling::kSlice);
        Split<Shape::kPrecision>(w.x, w.y, b.words[j][0]);
        Split<Shape::kPrecision>(w.z, w.w, b.words[j][1]);
      }
    }

    // sums += inputs · weightᵀ over 16 columns of both, for row tiles kBegin … kEnd - 1.
    template <int kBegin, int kEnd, int kRowTiles, int kColumnTiles>
    __device__ __forceinline__ void MultiplySixteen(float (&sums)[kRowTiles][kColumnTiles][4],
                                                    uint32_t fragment,
                                                    const WeightParts<kColumnTiles>& b) const {
      using Products = PartProducts<kParts>;
      // Chains of dependent products, several side by side.
      constexpr int kChains = kColumnTiles % 4 == 0 ? 4 : kColumnTiles % 2 == 0 ? 2 : 1;
      constexpr int kSets = kChains == 4 ? 1 : 2;
#pragma unroll
      for (int i = kBegin; i < kEnd; ++i) {
        uint32_t a[kParts][4];
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          LoadFragment(a[p],
                       fragment + p * Tiling::PartBytes() + i * 16 * Tiling::TileStride() * 2);
        }
#pragma unroll
        for (int j = 0; j < kColumnTiles; j += kChains) {
          if constexpr (Shape::kPrecision == Precision::kFloat32) {
            float sixteen[kSets][kChains][4] = {};
#pragma unroll
            for (int product = 0; product < Products::kCount; ++product) {
#pragma unroll
              for (int c = 0; c < kChains; ++c) {
                Multiply(sixteen[product * kSets / Products::kCount][c], a, b.words[j + c],
                         product);
              }
            }
#pragma unroll
            for (int c = 0; c < kChains; ++c) {
#pragma unroll
              for (int e = 0; e < 4; ++e) {
                float& sum = sums[i][j + c][e];
                sum += kSets == 2 ? sixteen[0][c][e] + sixteen[kSets - 1][c][e] : sixteen[0][c][e];
              }
            }
          } else {
#pragma unroll
            for (int product = 0; product < Products::kCount; ++product) {
#pragma unroll
              for (int c = 0; c < kChains; ++c) {
                Multiply(sums[i][j + c], a, b.words[j + c], product);
              }
            }
          }
        }
      }
    }
    __device__ __forceinline__ static void Multiply(float (&d)[4], const uint32_t (&a)[kParts][4],
                                                    const uint32_t (&b)[2][kParts], int product) {
      const PartProduct at = PartProducts<kParts>::At(product);
      MultiplyAdd<Shape::kPrecision>(d, a[at.a], b[0][at.b], b[1][at.b]);
    }

    template <int kRowTiles, int kColumnTiles>
    __device__ __forceinline__ void StoreRows(I first, uint32_t first_row, uint32_t first_column,
                                              const float (&sums)[kRowTiles][kColumnTiles][4]) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const I row = first + static_cast<I>(first_row + i * 16 + half * 8 + lane / 4);
          if (row >= kernel.groups) continue;
          const Indices<I, K> index = kept(row);
#pragma unroll
          for (int j = 0; j < kColumnTiles; ++j) {
            const uint32_t column = first_column + j * 8 + lane % 4 * 2;
            if (!IsValid<Shape::kLayers - 1>(column)) continue;
            Store(index, column, sums[i][j][half * 2]);
            Store(index, column + 1, sums[i][j][half * 2 + 1]);
          }
        }
      }
    }

    template <int kRowTiles, int kColumnTiles>
    __device__ __forceinline__ void StoreGroups(I first, uint32_t first_row, uint32_t first_column,
                                                const float (&sums)[kRowTiles][kColumnTiles][4]) {
      using Combine = typename Body::Combine;
      const Combine combine;
      constexpr int kTiles = kRows / 16;
#pragma unroll
      for (int i = 0; i < kRowTiles; i += kTiles) {
        const I group = first + static_cast<I>((first_row + i * 16) / kRows);
        const bool valid = group < kernel.groups;
        const Indices<I, K> index = kept(valid ? group : I{0});
        // Each lane gets all columns' results; lane l stores those of column tile l / 4 of eight.
#pragma unroll
        for (int begin = 0; begin < kColumnTiles; begin += 8) {
          constexpr int kMost = 8;
          float mine[2] = {};
#pragma unroll
          for (int j = begin; j < begin + kMost && j < kColumnTiles; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float value = combine(sums[i][j][e], sums[i][j][e + 2]);
              if constexpr (kTiles == 2) {
                value = combine(value, combine(sums[i + 1][j][e], sums[i + 1][j][e + 2]));
              }
#pragma unroll
              for (int mask = 4; mask < 32; mask *= 2) {
                value = combine(value, ShuffleXor(value, mask));
              }
              if (lane / 4 == j - begin) mine[e] = value;
            }
          }
          const uint32_t j = begin + lane / 4;
          const uint32_t column = first_column + j * 8 + lane % 4 * 2;
          if (valid && j < kColumnTiles && IsValid<Shape::kLayers - 1>(column)) {
            Store(index, column, mine[0]);
            Store(index, column + 1, mine[1]);
          }
        }
      }
    }

    __device__ __forceinline__ Indices<I, K> kept(I group) const { return kernel.kept.At(group); }
    __device__ __forceinline__ void Store(const Indices<I, K>& index, uint32_t column,
                                          float value) const {
      StoreElement(kernel.body, index, static_cast<I>(panel * Shape::kOutput + column), value);
    }
  };
};

// The entry point, whose symbol carries the name of the body.
template <class Kernel, int kBlocks>
__global__ void __launch_bounds__(kBlockThreads, kBlocks)
    DenseEntry(const __grid_constant__ Kernel kernel) {
  kernel();
}

template <class Body, class I, size_t K, class Shape>
struct DenseOnGpu {
  using Layers = std::array<DenseLayer, Shape::kLayers>;
  using LargeShape = typename DensePanel<Shape, 256>::Type;
  using SmallShape = typename DensePanel<Shape, 32>::Type;
  using Large = LargeTiling<LargeShape>;
  using Small = SmallTiling<SmallShape>;

  static void Launch(LaunchContext& context, const Body& body, const std::array<int64_t, K>& kept,
                     const Layers& layers) {
    for (const DenseLayer& layer : layers) {
      if (reinterpret_cast<uintptr_t>(layer.weight) % 16 != 0) {
        throw ArgumentError("Dense: a weight is not 16-byte aligned");
      }
    }
    // The time that the busiest multiprocessor takes, in elements of the outputs.
    const auto time = [&]<class PanelShape, class Tiling>() {
      constexpr int kColumns = Tiling::Outputs(PanelShape::kLayers - 1);
      const int64_t tiles = Shape::kOutput / kColumns * Tiles<Tiling>(kept);
      const int64_t multiprocessors = LimitsOf(context).multiprocessors;
      return (tiles + multiprocessors - 1) / multiprocessors * Tiling::kTileRows * kColumns;
    };
    const int64_t small = time.template operator()<SmallShape, Small>();
    if constexpr (FitsWarpgroups<LargeShape>()) {
      using Tiling = WarpgroupTiling<LargeShape, ChooseWarpgroups<LargeShape>()>;
      const bool split = std::all_of(layers.begin(), layers.end(),
                                     [](const auto& layer) { return layer.parts != nullptr; });
      const auto launch = [&]<class Used>() {
        LaunchDenseWarpgroups<LargeShape, Used, I>(context, body, kept, layers, Shape::kOutput);
      };
      // Small tiles use a multiprocessor a quarter as well.
      const int64_t most = split && LimitsOf(context).warpgroups ? 4 * small : 0;
      const int64_t large = time.template operator()<LargeShape, Tiling>();
      using Shared = WarpgroupTiling<Shape, 1, BlocksOfCluster<Shape>()>;
      if constexpr (Shared::kExchanges) {
        // All at once: a second round of clusters takes longer than blocks whose warps overlap.
        if (most > 0 &&
            Shared::kBlocks * Tiles<Shared>(kept) <= LimitsOf(context).multiprocessors) {
          return launch.template operator()<Shared>();
        }
      }
      if (large <= most) return launch.template operator()<Tiling>();
    }
    // And half as well as large tiles of the same kind.
    if (Large::SharedBytes(2) <= LimitsOf(context).shared_bytes &&
        time.template operator()<LargeShape, Large>() <= 2 * small) {
      LaunchWith<LargeShape, Large>(context, body, kept, layers);
    } else {
      LaunchWith<SmallShape, Small>(context, body, kept, layers);
    }
  }

 private:
  template <class PanelShape>
  static constexpr int64_t Panels() {
    return Shape::kOutput / PanelShape::kOutput;
  }
  template <class Tiling>
  static int64_t Tiles(const std::array<int64_t, K>& kept) {
    return (Elements(kept) + Tiling::kGroups - 1) / Tiling::kGroups;
  }

  template <class PanelShape, class Tiling>
  static void LaunchWith(LaunchContext& context, const Body& body,
                         const std::array<int64_t, K>& kept, const Layers& layers) {
    using Kernel = DenseTiles<Body, I, K, PanelShape, Tiling>;
    const GpuLimits& limits = LimitsOf(context);
    const int64_t tiles = Tiles<Tiling>(kept);
    const int slices =
        Tiling::SharedBytes(Tiling::kMostSlices) <= limits.shared_bytes ? Tiling::kMostSlices : 2;
    if (Tiling::SharedBytes(slices) > limits.shared_bytes) {
      throw DeviceError("the device has " + std::to_string(limits.shared_bytes) +
                        " bytes of shared memory for a block; a chain of dense layers needs " +
                        std::to_string(Tiling::SharedBytes(slices)));
    }
    Kernel kernel = {.body = body,
                     .kept = IndexSpace<I, K>(kept),
                     .layers = {},
                     .groups = static_cast<I>(Elements(kept)),
                     .tiles = static_cast<uint32_t>(tiles),
                     .slices = slices,
                     .constant = std::all_of(layers.begin(), layers.end(),
                                             [](const auto& layer) { return layer.constant; })};
    std::copy(layers.begin(), layers.end(), kernel.layers);
    const auto entry = reinterpret_cast<const void*>(&DenseEntry<Kernel, Tiling::kBlocks>);
    constexpr int64_t kPanels = Panels<PanelShape>();
    const int64_t at_once = int64_t{limits.multiprocessors} * Tiling::kBlocks;
    const int64_t blocks = std::min(tiles, (at_once + kPanels - 1) / kPanels);
    LaunchKernel(context, entry,
                 dim3(static_cast<uint32_t>(blocks), static_cast<uint32_t>(kPanels)),
                 Tiling::SharedBytes(slices), kernel);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_GPU_H_
