// A chain of dense layers that is computed on tiles of rows, so that what lies between the layers
// is never written to memory.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_SHAPE_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_SHAPE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/kernels/index.h"
#include "sofie/runtime/precision.h"

namespace sofie::kernels {

using ::sofie::Precision;

// out = activation(in · weightᵀ + bias): weight is [width out, width in], row-major and 16-byte
// aligned; bias has [width out] elements or is null; the activation is ReLU, or none. All in the
// memory of the backend.
struct DenseLayer {
  const float* weight = nullptr;
  const float* bias = nullptr;
  bool relu = false;
  bool constant = false;  // nothing in the queue writes the weight or the bias
  // The weight in 16-bit parts, each where PartPlace says, or null; 16-byte aligned. They change no
  // result: GPUs that have wgmma are faster with them.
  const uint16_t* parts = nullptr;
};

// Parts of an element, 16 bits each: three bfloat16 hold a float, two hold 16 bits of it.
constexpr int PartsOf(Precision precision) {
  return precision == Precision::kFloat32 ? 3 : precision == Precision::kTf32 ? 2 : 1;
}

// Where a part of weight[n, k] is among all. Inputs come in steps of 16, an even number of them; a
// step has its parts one after the other, a part the order in which wgmma reads it. The order of a
// step's inputs, 0 1 4 5 8 9 12 13 2 3 6 7 10 11 14 15, lets a lane that multiplies four
// neighbouring ones read them at once. sofie/plan/split_weights.py writes them.
constexpr size_t PartPlace(size_t outputs, int parts, size_t n, size_t k, int part) {
  const size_t step = k / 16;
  const size_t column = k % 16;
  const size_t half = column / 2 % 2;
  return (step * parts + part) * outputs * 16 + n / 8 * 128 + half * 64 + n % 8 * 8 +
         column / 4 * 2 + column % 2;
}
// Elements of all parts of a weight.
constexpr size_t PartElements(size_t outputs, size_t inputs, int parts) {
  return (inputs + 31) / 32 * 32 * outputs * parts;
}

// The extents of nested loops, outermost first. A body whose rows are written as several loops
// names them: with `using Channels = Extents<3, 3, 8>` a row has 72 elements and Load takes three
// indices for the place in it.
template <int... kExtents_>
struct Extents {
  static constexpr std::array<int, sizeof...(kExtents_)> kExtents = {kExtents_...};
  static constexpr size_t kAxes = sizeof...(kExtents_);
  // Elements of one step of the loop of an axis.
  static constexpr int Stride(size_t axis) {
    int product = 1;
    for (size_t inner = axis + 1; inner < kAxes; ++inner) product *= kExtents[inner];
    return product;
  }
};

// How many loops a body's rows are written as.
template <class Body>
consteval size_t ChannelAxes() {
  if constexpr (requires { typename Body::Channels; }) {
    return Body::Channels::kAxes;
  } else {
    return 1;
  }
}

// Element `channel` of a body's row; `at` are the indices of the group, of the row in it, and of
// the first kAxis loops over the row.
template <size_t kAxis = 0, class Body, class I, class... At>
ALPAKA_FN_HOST_ACC float LoadChannel(const Body& body, I channel, At... at) {
  if constexpr (kAxis + 1 < ChannelAxes<Body>()) {
    constexpr I kStride = Body::Channels::Stride(kAxis);
    return LoadChannel<kAxis + 1>(body, channel % kStride, at..., channel / kStride);
  } else {
    return body.Load(at..., channel);
  }
}

// Element [row, channel] of the group at `index`.
template <class Body, class I, size_t K>
ALPAKA_FN_HOST_ACC float LoadElement(const Body& body, const Indices<I, K>& index, I row,
                                     I channel) {
  return [&]<size_t... A>(std::index_sequence<A...>) {
    return LoadChannel(body, channel, index.value[A]..., row);
  }(std::make_index_sequence<K>());
}

// Gives the body the result of the group at `index` in an output column.
template <class Body, class I, size_t K>
ALPAKA_FN_HOST_ACC void StoreElement(const Body& body, const Indices<I, K>& index, I column,
                                     float value) {
  [&]<size_t... A>(std::index_sequence<A...>) {
    body.Store(index.value[A]..., column, value);
  }(std::make_index_sequence<K>());
}

// Groups of kRows_ rows that go through layers of widths kWidths_: those of the input and of each
// layer's output. The kernels are made for widths that are multiples of 32; others only cost more.
// On a GPU an infinite operand may give NaN where float arithmetic gives an infinity.
template <int kRows_, Precision kPrecision_, int... kWidths_>
struct DenseShape {
  static constexpr int kRows = kRows_;
  static constexpr Precision kPrecision = kPrecision_;
  static constexpr int kLayers = static_cast<int>(sizeof...(kWidths_)) - 1;
  static constexpr std::array<int, sizeof...(kWidths_)> kWidths = {kWidths_...};
  static constexpr int kInput = kWidths[0];
  static constexpr int kOutput = kWidths[sizeof...(kWidths_) - 1];
  static constexpr int kWidest = std::max({kWidths_...});

  static_assert(kRows == 1 || kRows == 16 || kRows == 32, "groups have 1, 16 or 32 rows");
  static_assert(kLayers >= 1 && kLayers <= 4, "there may be 1 to 4 layers");
  static_assert(kInput >= 1 && kInput <= 512, "the input's width must be in 1 … 512");
  static_assert(
      [] {
        for (size_t i = 1; i < kWidths.size(); ++i) {
          const int most = kLayers == 1 && kRows == 1 ? 1024 : 256;
          if (kWidths[i] < 8 || kWidths[i] > most || kWidths[i] % 8 != 0) return false;
        }
        return true;
      }(),
      "the layers' widths must be multiples of 8 in 8 … 256, of one layer of single rows … 1024");
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_SHAPE_H_
