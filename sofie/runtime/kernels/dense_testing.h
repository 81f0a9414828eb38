// What tests of dense layers share.
#ifndef SOFIE_RUNTIME_KERNELS_DENSE_TESTING_H_
#define SOFIE_RUNTIME_KERNELS_DENSE_TESTING_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// The row of x for each row of a group comes from an index array, as neighbours do. A second kept
// axis makes the outputs' order differ from the groups' order.
template <class I, class C>
struct GatheredRows {
  using Combine = C;
  const float* x;        // [points, width]
  const int64_t* index;  // [d0, d1, rows]
  float* out;            // [d1, d0, outputs]
  I d0, d1, rows, width, outputs;

  ALPAKA_FN_ACC float Load(I i0, I i1, I r, I c) const {
    return x[static_cast<I>(index[(i0 * d1 + i1) * rows + r]) * width + c];
  }
  ALPAKA_FN_ACC void Store(I i0, I i1, I c, float value) const {
    out[(i1 * d0 + i0) * outputs + c] = value;
  }
};

// One row for each kept point, and no Combine.
template <class I>
struct PlainRows {
  const float* x;
  float* out;
  I width, outputs;

  ALPAKA_FN_ACC float Load(I i, I, I c) const { return x[i * width + c]; }
  ALPAKA_FN_ACC void Store(I i, I c, float value) const { out[i * outputs + c] = value; }
};

// The same rows, written as three loops.
template <class I>
struct RowsOfWindows : PlainRows<I> {
  using Channels = Extents<3, 5, 4>;

  ALPAKA_FN_ACC float Load(I i, I r, I c0, I c1, I c2) const {
    return PlainRows<I>::Load(i, r, (c0 * 5 + c1) * 4 + c2);
  }
};

// What a case applies after each product.
struct DenseOptions {
  bool bias = true;
  bool relu = true;
  bool constant = true;
  bool parts = true;
};

// `value` in the 16-bit type of a precision's parts, rounded to nearest, and as a float again.
inline uint16_t PartOf(Precision precision, float value, float* rounded) {
  if (precision == Precision::kFloat16) {
    const Float16 half(value);
    *rounded = static_cast<float>(half);
    return half.bits;
  }
  const BFloat16 part(value);
  *rounded = static_cast<float>(part);
  return part.bits;
}
inline std::vector<uint16_t> PartsOfWeight(const std::vector<float>& weight, size_t outputs,
                                           size_t inputs, Precision precision) {
  const int parts = PartsOf(precision);
  std::vector<uint16_t> result(PartElements(outputs, inputs, parts));
  for (size_t n = 0; n < outputs; ++n) {
    for (size_t k = 0; k < inputs; ++k) {
      float rest = weight[n * inputs + k];
      for (int part = 0; part < parts; ++part) {
        float rounded = 0;
        result[PartPlace(outputs, parts, n, k, part)] = PartOf(precision, rest, &rounded);
        rest -= rounded;
      }
    }
  }
  return result;
}

// The layers of a shape, with weights and biases of about the size that keeps values near 1.
template <class B, class Shape>
class DenseLayers {
 public:
  explicit DenseLayers(const DenseOptions& options) : options_(options) {
    for (int i = 0; i < Shape::kLayers; ++i) {
      const int64_t in = Shape::kWidths[i];
      const int64_t out = Shape::kWidths[i + 1];
      std::vector<float> weight = RandomVector<float>(in * out, 51 + i);
      for (float& w : weight) w *= std::sqrt(6.0f / in);
      weights_.push_back(std::make_unique<Array<B, float>>(weight));
      parts_.push_back(
          std::make_unique<Array<B, uint16_t>>(PartsOfWeight(weight, out, in, Shape::kPrecision)));
      host_weights_.push_back(weight);
      host_biases_.push_back(RandomVector<float>(out, 61 + i));
      biases_.push_back(std::make_unique<Array<B, float>>(host_biases_.back()));
    }
  }

  std::array<DenseLayer, Shape::kLayers> layers() {
    std::array<DenseLayer, Shape::kLayers> layers;
    for (int i = 0; i < Shape::kLayers; ++i) {
      layers[i].weight = weights_[i]->data();
      // With more than one layer, biases and activations of all kinds side by side.
      if (HasBias(i)) layers[i].bias = biases_[i]->data();
      layers[i].relu = HasRelu(i);
      layers[i].constant = options_.constant;
      if (options_.parts) layers[i].parts = parts_[i]->data();
    }
    return layers;
  }

  // A row after all layers, every sum in `T` from first to last.
  template <class T>
  std::vector<T> Apply(std::vector<T> row) const {
    for (int i = 0; i < Shape::kLayers; ++i) {
      std::vector<T> next(Shape::kWidths[i + 1]);
      for (size_t n = 0; n < next.size(); ++n) {
        T sum = 0;
        for (size_t k = 0; k < row.size(); ++k) {
          sum = std::fma(row[k], static_cast<T>(host_weights_[i][n * row.size() + k]), sum);
        }
        if (HasBias(i)) sum += static_cast<T>(host_biases_[i][n]);
        next[n] = HasRelu(i) && sum < 0 ? T{0} : sum;
      }
      row = next;
    }
    return row;
  }

 private:
  bool HasBias(int i) const { return options_.bias && i != 2; }
  bool HasRelu(int i) const { return options_.relu && i != 1; }

  DenseOptions options_;
  std::vector<std::vector<float>> host_weights_, host_biases_;
  std::vector<std::unique_ptr<Array<B, float>>> weights_, biases_;
  std::vector<std::unique_ptr<Array<B, uint16_t>>> parts_;
};

template <class B>
class DenseFixture : public ::testing::Test {
 protected:
  // How far a result is from float64, beside float arithmetic in the order of the columns.
  struct Errors {
    double kernel = 0;
    double float_loop = 0;
  };

  // Gathers `groups` groups, of d0 · d1, from fewer points, and compares them with loops in double
  // precision.
  template <class Shape, class C>
  Errors Gathered(int64_t d0, int64_t d1, const DenseOptions& options = {}) {
    SCOPED_TRACE("groups " + std::to_string(d0) + " x " + std::to_string(d1) + ", bias " +
                 std::to_string(options.bias) + ", relu " + std::to_string(options.relu) +
                 ", parts " + std::to_string(options.parts));
    const int64_t groups = d0 * d1;
    const int64_t points = std::clamp<int64_t>(groups, 1, 40);
    const std::vector<float> x = RandomVector<float>(points * Shape::kInput, 71);
    std::vector<int64_t> index(groups * Shape::kRows);
    std::mt19937 random(72);
    for (int64_t& i : index) i = std::uniform_int_distribution<int64_t>(0, points - 1)(random);
    DenseLayers<B, Shape> layers(options);
    Array<B, float> x_array(x);
    Array<B, int64_t> index_array(index);
    Array<B, float> out(groups * Shape::kOutput);
    Launcher<B>(*context_).template Dense<Shape>(
        std::array<int64_t, 2>{d0, d1}, layers.layers(), [&]<class I>() {
          return GatheredRows<I, C>{x_array.data(),
                                    index_array.data(),
                                    out.data(),
                                    static_cast<I>(d0),
                                    static_cast<I>(d1),
                                    static_cast<I>(Shape::kRows),
                                    static_cast<I>(Shape::kInput),
                                    static_cast<I>(Shape::kOutput)};
        });
    std::vector<std::vector<double>> exact;
    std::vector<std::vector<float>> rounded;
    for (int64_t p = 0; p < points; ++p) {
      const auto begin = x.begin() + p * Shape::kInput;
      exact.push_back(layers.Apply(std::vector<double>(begin, begin + Shape::kInput)));
      rounded.push_back(layers.Apply(std::vector<float>(begin, begin + Shape::kInput)));
    }
    std::vector<double> expected(groups * Shape::kOutput);
    std::vector<float> float_loop(expected.size());
    for (int64_t i0 = 0; i0 < d0; ++i0) {
      for (int64_t i1 = 0; i1 < d1; ++i1) {
        for (int64_t c = 0; c < Shape::kOutput; ++c) {
          const int64_t* const at = index.data() + (i0 * d1 + i1) * Shape::kRows;
          double sum = exact[at[0]][c];
          float float_sum = rounded[at[0]][c];
          for (int64_t r = 1; r < Shape::kRows; ++r) {
            if constexpr (std::is_same_v<C, Max<float>>) {
              sum = std::max(sum, exact[at[r]][c]);
              float_sum = std::max(float_sum, rounded[at[r]][c]);
            } else {
              sum += exact[at[r]][c];
              float_sum += rounded[at[r]][c];
            }
          }
          expected[(i1 * d0 + i0) * Shape::kOutput + c] = sum;
          float_loop[(i1 * d0 + i0) * Shape::kOutput + c] = float_sum;
        }
      }
    }
    const std::vector<float>& got = out.Read(context_);
    const double tolerance = 1e-6 * PrecisionLoss<B>(Shape::kPrecision);
    const Errors errors = {RelativeError(got, expected), RelativeError(float_loop, expected)};
    EXPECT_LT(errors.kernel, tolerance);
    double scale = 0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) {
      if (!(std::abs(got[i] - expected[i]) <= 5 * tolerance * scale)) {
        ADD_FAILURE() << "group and column " << i / Shape::kOutput << ", " << i % Shape::kOutput
                      << ": " << got[i] << " instead of " << expected[i];
        break;
      }
    }
    return errors;
  }

  // Few groups, a tail, and enough for every block and thread. Groups of single rows have nothing
  // to combine.
  template <class Shape, class C = Sum<float>>
  void AllSizes() {
    Gathered<Shape, C>(0, 3);
    Gathered<Shape, C>(1, 1);
    Gathered<Shape, C>(7, 1, {.relu = false});
    Gathered<Shape, C>(11, 10, {.bias = false});
    Gathered<Shape, C>(10, 100);
    Gathered<Shape, C>(10, 100, {.parts = false});
    Gathered<Shape, C>(20, 50, {.constant = false});
    Gathered<Shape, C>(2501, 1, {.bias = false, .relu = false});
    Gathered<Shape, C>(2501, 1, {.bias = false, .relu = false, .parts = false});
  }

  static void ExpectAsAccurate(const char* name, const Errors& errors) {
    std::printf("%s: relative error %.3g, of float arithmetic in sequence %.3g\n", name,
                errors.kernel, errors.float_loop);
    // The CPU's products are float arithmetic too, in another order.
    EXPECT_LE(errors.kernel, (B::kGpu ? 1.0 : 1.5) * errors.float_loop) << name;
  }

  // Rows in memory, one for each group, beside loops in double precision.
  template <class Shape, template <class> class Body>
  void InMemory(int64_t groups) {
    const std::vector<float> x = RandomVector<float>(groups * Shape::kInput, 73);
    DenseLayers<B, Shape> layers({});
    Array<B, float> x_array(x);
    Array<B, float> out(groups * Shape::kOutput);
    Launcher<B>(*context_).template Dense<Shape>(
        std::array<int64_t, 1>{groups}, layers.layers(), [&]<class I>() {
          Body<I> body;
          static_cast<PlainRows<I>&>(body) = {x_array.data(), out.data(), Shape::kInput,
                                              Shape::kOutput};
          return body;
        });
    const std::vector<float>& got = out.Read(context_);
    for (int64_t i = 0; i < groups; ++i) {
      const auto begin = x.begin() + i * Shape::kInput;
      const std::vector<double> expected =
          layers.Apply(std::vector<double>(begin, begin + Shape::kInput));
      for (int64_t c = 0; c < Shape::kOutput; ++c) {
        ASSERT_NEAR(got[i * Shape::kOutput + c], expected[c], 1e-5) << i << ", " << c;
      }
    }
  }

  TestContext<B> context_;
};

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_DENSE_TESTING_H_
