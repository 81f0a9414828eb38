// Views with strides: one session reads them where they are, at many sizes and with any strides.
#include "tests/strided_inputs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sofie/runtime/dtype.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/testing.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

constexpr int64_t kChannels = 3;
constexpr int64_t kOutputs = 4;

struct Layout {
  const char* name;
  Strides strides;
  int64_t offset = 0;
};

std::vector<Layout> Layouts(int64_t n, int64_t p) {
  return {
      {"packed", {}},
      {"packed, and said so", {kChannels * p, p, 1}},
      {"transposed", {1, n, kChannels * n}},
      {"padded", {kChannels * (p + 3) + 5, p + 3, 1}, 7},
      {"sliced", {4 * kChannels * p, 4 * p, 2}, 1},
      {"rows repeated", {0, p, 1}},
      {"columns repeated", {kChannels, 1, 0}},
      {"all repeated", {0, 0, 0}, 3},
      {"overlapping", {1, 1, 1}},
  };
}

// Inputs and what the model makes of them; see tests/strided_inputs.py. Small integers: every sum
// is exact.
struct Example {
  Example(int64_t n, int64_t p, const Layout& layout) : n(n), p(p), layout(layout), b(p) {
    const Shape shape = {n, kChannels, p};
    pool.dtype = DType::kFloat32;
    pool.shape = {layout.offset + ElementsSpanned(shape, layout.strides)};
    pool.data.resize(4 * pool.shape[0]);
    for (int64_t i = 0; i < pool.shape[0]; ++i) {
      const auto value = static_cast<float>((37 * i + 11) % 101 - 50);
      std::memcpy(pool.data.data() + 4 * i, &value, 4);
    }
    for (int64_t i = 0; i < p; ++i) b[i] = static_cast<float>(1000 * i);
  }

  // The view of x in a copy of the pool.
  View<const float> X(const void* data, Memory memory) const {
    return {
        static_cast<const float*>(data) + layout.offset, {n, kChannels, p}, memory, layout.strides};
  }
  float At(int64_t row, int64_t channel, int64_t column) const {
    const bool packed = layout.strides.rank() == 0;
    const Strides s = packed ? Strides{kChannels * p, p, 1} : layout.strides;
    const int64_t place = layout.offset + row * s[0] + channel * s[1] + column * s[2];
    float value;
    std::memcpy(&value, pool.data.data() + 4 * place, 4);
    return value;
  }
  std::vector<float> Moved() const {
    std::vector<float> moved;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < kChannels; ++c) {
        for (int64_t j = 0; j < p; ++j) moved.push_back(2 * At(i, c, j) + b[j]);
      }
    }
    return moved;
  }
  std::vector<float> Sums() const {
    std::vector<float> sums;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < kChannels; ++c) {
        float sum = 0;
        for (int64_t j = 0; j < p; ++j) sum += At(i, c, j);
        sums.push_back(sum);
      }
    }
    return sums;
  }
  std::vector<float> Product() const {
    std::vector<float> product;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < p; ++j) {
        for (int64_t k = 0; k < kOutputs; ++k) {
          float sum = 0;
          for (int64_t c = 0; c < kChannels; ++c) {
            sum += At(i, c, j) * static_cast<float>(kOutputs * c + k - 5);
          }
          product.push_back(sum);
        }
      }
    }
    return product;
  }

  int64_t n;
  int64_t p;
  Layout layout;
  CaseTensor pool;
  std::vector<float> b;
};

// Poisoned memory for the outputs.
struct Results {
  explicit Results(const Example& e)
      : n(e.n),
        p(e.p),
        moved(n * kChannels * p, -1e9f),
        sums(n * kChannels, -1e9f),
        product(n * p * kOutputs, -1e9f) {}
  strided_inputs::OutputBuffers Buffers() {
    return {.moved = {moved.data(), {n, kChannels, p}},
            .sums = {sums.data(), {n, kChannels}},
            .product = {product.data(), {n, p, kOutputs}}};
  }
  void Expect(const Example& e) const {
    EXPECT_EQ(moved, e.Moved());
    EXPECT_EQ(sums, e.Sums());
    EXPECT_EQ(product, e.Product());
  }
  int64_t n;
  int64_t p;
  std::vector<float> moved;
  std::vector<float> sums;
  std::vector<float> product;
};

class StridedInputsTest : public BackendTest {
 protected:
  void RunOnHost(const Example& e) {
    Results results(e);
    session_.Run({.x = e.X(e.pool.data.data(), Memory::kHost), .b = {e.b.data(), {e.p}}},
                 results.Buffers());
    results.Expect(e);
  }

  strided_inputs::Session session_{device()};
};

TEST_P(StridedInputsTest, Views) {
  for (const auto& [n, p] : {std::pair<int64_t, int64_t>{2, 5},
                             {1, 1},
                             {0, 4},
                             {7, 3},
                             {3, 0},
                             {40, 33},
                             {1, 6},
                             {5, 1}}) {
    for (const Layout& layout : Layouts(n, p)) {
      SCOPED_TRACE(std::string(layout.name) + " " + std::to_string(n) + " " + std::to_string(p));
      RunOnHost({n, p, layout});
    }
  }
}

// Views of the memory that kernels read, by Run and, without any copy, by Enqueue.
TEST_P(StridedInputsTest, ViewsOfTheDevicesMemory) {
  for (const auto& [n, p] : {std::pair<int64_t, int64_t>{6, 9}, {1, 2}, {0, 1}, {3, 20}}) {
    for (const Layout& layout : Layouts(n, p)) {
      SCOPED_TRACE(std::string(layout.name) + " " + std::to_string(n) + " " + std::to_string(p));
      const Example e(n, p, layout);
      DeviceTensors tensors(GetParam());
      const MutableTensorView pool = tensors.Upload(e.pool);
      CaseTensor b{DType::kFloat32, {p}, std::vector<std::byte>(4 * p)};
      if (p > 0) std::memcpy(b.data.data(), e.b.data(), b.data.size());
      const MutableTensorView shift = tensors.Upload(b);
      const std::vector<TensorView> inputs = {e.X(pool.data, pool.memory),
                                              {shift.data, shift.dtype, shift.shape, shift.memory}};
      Results results(e);
      session_.core().Run(
          inputs, std::vector<MutableTensorView>{results.Buffers().moved, results.Buffers().sums,
                                                 results.Buffers().product});
      results.Expect(e);

      const auto buffer = [&](const Shape& shape) {
        CaseTensor poisoned{DType::kFloat32, shape, {}};
        poisoned.data.assign(4 * shape.elements(), std::byte{0xff});
        return tensors.Upload(poisoned);
      };
      const std::vector<MutableTensorView> outputs = {
          buffer({n, kChannels, p}), buffer({n, kChannels}), buffer({n, p, kOutputs})};
      session_.core().Enqueue(inputs, outputs);
      session_.core().Synchronize();
      const std::vector<std::vector<float>> wanted = {e.Moved(), e.Sums(), e.Product()};
      for (size_t i = 0; i < outputs.size(); ++i) {
        const MutableTensorView& view = outputs[i];
        const CaseTensor found = tensors.Download({view.data, view.dtype, view.shape, view.memory});
        ASSERT_EQ(found.data.size(), 4 * wanted[i].size());
        if (wanted[i].empty()) continue;
        EXPECT_EQ(std::memcmp(found.data.data(), wanted[i].data(), found.data.size()), 0) << i;
      }
    }
  }
}

// Strides are sizes like others: each set of them has a plan. What no element depends on is none.
TEST_P(StridedInputsTest, Plans) {
  session_.Prepare({.N = 2, .P = 5});
  const auto plans = [&] { return session_.core().memory().plans; };
  EXPECT_EQ(plans(), 1);
  RunOnHost({2, 5, {"", {}}});
  RunOnHost({2, 5, {"", {15, 5, 1}}});
  EXPECT_EQ(plans(), 1);
  session_.Prepare({.N = 2, .P = 5, .x_strides_0 = 1, .x_strides_1 = 2, .x_strides_2 = 6});
  EXPECT_EQ(plans(), 2);
  RunOnHost({2, 5, {"", {1, 2, 6}}});
  EXPECT_EQ(plans(), 2);
  RunOnHost({1, 5, {"", {999, 5, 1}}});
  RunOnHost({1, 5, {"", {0, 5, 1}}});
  EXPECT_EQ(plans(), 3);
  RunOnHost({0, 5, {"", {7, 8, 9}}});
  RunOnHost({0, 5, {"", {1, 0, 1}}});
  EXPECT_EQ(plans(), 4);
}

TEST_P(StridedInputsTest, ReservedMemorySuffices) {
  session_.Reserve({.N = 8, .P = 9, .x_strides_0 = 100, .x_strides_1 = 30, .x_strides_2 = 3});
  const size_t arena = session_.core().memory().arena;
  RunOnHost({8, 9, {"", {100, 30, 3}}});
  RunOnHost({7, 9, {"", {100, 1, 2}}});
  RunOnHost({8, 9, {"", {}}});
  EXPECT_EQ(session_.core().memory().arena, arena);
}

TEST_P(StridedInputsTest, Errors) {
  const std::vector<float> x(1000);
  const auto run = [&](const Strides& x_strides, const Strides& b_strides) {
    session_.Run({.x = {x.data(), {2, kChannels, 5}, Memory::kHost, x_strides},
                  .b = {x.data(), {5}, Memory::kHost, b_strides}});
  };
  ExpectThrows<ShapeError>([&] { run({5, 1}, {}); },
                           "input 'x': strides [5, 1] and shape [2, 3, 5] differ in length; give "
                           "one stride for each axis, or none");
  ExpectThrows<ShapeError>([&] { run({15, -5, 1}, {}); },
                           "input 'x', axis 1: stride -5 is negative; strides start at 0");
  ExpectThrows<ArgumentError>(
      [&] { run({}, {2}); },
      "input 'b': shape [5] with strides [2] is not packed, but the model reads this input packed; "
      "name it in strided_inputs of the model's onnx_cc_library, or pack the data");
  EXPECT_THROW(run({int64_t{1} << 50, 5, 1}, {}), MemoryError);
  EXPECT_THROW(run({int64_t{1} << 62, int64_t{1} << 62, int64_t{1} << 62}, {}), MemoryError);
  ExpectThrows<ShapeError>([&] { session_.Prepare({.N = 2, .P = 5, .x_strides_1 = -2}); },
                           "size x.strides[1] = -2 is negative; sizes start at 0");
  run({15, 5, 1}, {1});  // packed, and said so
  RunOnHost({2, 5, {"", {1, 2, 6}}});
}

TEST_P(StridedInputsTest, Outputs) {
  const Example e(2, 5, {"", {100, 5, 1}});
  std::vector<float> memory(400);
  Results results(e);
  strided_inputs::OutputBuffers buffers = results.Buffers();
  const strided_inputs::Inputs inputs = {.x = e.X(memory.data(), Memory::kHost),
                                         .b = {e.b.data(), {5}}};
  // Between two rows of x.
  buffers.sums.data = memory.data() + 50;
  ExpectThrows<ArgumentError>([&] { session_.Run(inputs, buffers); },
                              "output 'sums' overlaps input 'x' in memory; give separate buffers");
  // Behind its last row.
  buffers.sums.data = memory.data() + 200;
  session_.Run(inputs, buffers);
  buffers.sums.strides = {4, 1};
  ExpectThrows<ArgumentError>([&] { session_.Run(inputs, buffers); },
                              "output 'sums': shape [2, 3] with strides [4, 1] is not packed; "
                              "outputs are written packed: leave the strides out");
}

INSTANTIATE_TEST_SUITE_P(, StridedInputsTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
