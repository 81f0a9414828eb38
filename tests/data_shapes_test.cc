// Shapes that depend on data: one session at many values of it, growing and shrinking.
#include "tests/data_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sofie/runtime/dtype.h"
#include "sofie/runtime/error.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

constexpr int64_t kColumns = 4;

struct Values {
  int64_t rows;
  int64_t k;
  int64_t axis;
  float stop;
};

// Inputs, and what the model makes of them; see tests/data_shapes.py.
struct Example {
  explicit Example(const Values& values) : values(values), x(values.rows * kColumns) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>((37 * i + 11) % 101) - 50.0f;  // no two rows alike, both signs
    }
  }

  std::vector<TensorView> Inputs() const {
    return {View<const float>{x.data(), {values.rows, kColumns}},
            View<const int64_t>{&values.k, {1}}, View<const int64_t>{&values.axis, {1}},
            View<const float>{&values.stop, {1}}};
  }
  std::vector<float> Top() const {
    std::vector<float> top(values.k * kColumns);
    for (int64_t column = 0; column < kColumns; ++column) {
      std::vector<float> sorted;
      for (int64_t row = 0; row < values.rows; ++row) sorted.push_back(x[row * kColumns + column]);
      std::sort(sorted.rbegin(), sorted.rend());
      for (int64_t row = 0; row < values.k; ++row) top[row * kColumns + column] = sorted[row];
    }
    return top;
  }
  std::vector<float> Sums() const {
    const bool over_rows = values.axis == 0 || values.axis == -2;
    std::vector<float> sums(over_rows ? kColumns : values.rows);
    for (size_t i = 0; i < x.size(); ++i) sums[over_rows ? i % kColumns : i / kColumns] += x[i];
    return sums;
  }
  Shape SumsShape() const {
    return values.axis == 0 || values.axis == -2 ? Shape{1, kColumns} : Shape{values.rows, 1};
  }
  int64_t HeadRows() const {
    const auto stop = static_cast<int64_t>(values.stop);
    return std::clamp<int64_t>(stop < 0 ? stop + values.rows : stop, 0, values.rows);
  }
  std::vector<float> Head() const { return {x.begin(), x.begin() + HeadRows() * kColumns}; }
  std::vector<int64_t> Numbers() const {
    std::vector<int64_t> numbers;
    for (int64_t row = 0; row < HeadRows(); ++row) {
      if (x[row * kColumns] > 0) numbers.push_back(static_cast<int64_t>(numbers.size()));
    }
    return numbers;
  }

  Values values;
  std::vector<float> x;
};

template <class T>
std::vector<T> Elements(const TensorView& view) {
  const T* data = static_cast<const T*>(view.data);
  return {data, data + view.shape.elements()};
}

void ExpectOutputs(const Example& example, std::span<const TensorView> outputs) {
  EXPECT_EQ(outputs[0].shape, (Shape{example.values.k, kColumns}));
  EXPECT_EQ(Elements<float>(outputs[0]), example.Top());
  EXPECT_EQ(outputs[1].shape, example.SumsShape());
  EXPECT_EQ(Elements<float>(outputs[1]), example.Sums());
  EXPECT_EQ(outputs[2].shape, (Shape{example.HeadRows(), kColumns}));
  EXPECT_EQ(Elements<float>(outputs[2]), example.Head());
  EXPECT_EQ(outputs[3].shape, (Shape{static_cast<int64_t>(example.Numbers().size())}));
  EXPECT_EQ(Elements<int64_t>(outputs[3]), example.Numbers());
}

const std::vector<Values>& AllValues() {
  static const std::vector<Values> values = {
      {9, 3, 0, 5}, {9, 9, 1, 2},   {30, 1, -1, 30}, {1, 1, -2, 1},      {9, 0, 0, 0},
      {0, 0, 1, 3}, {9, 4, 0, -2},  {9, 3, 0, 5},    {700, 250, 1, 600}, {9, 3, 0, 5},
      {9, 3, 0, 6}, {9, 3, 0, 1e9}, {9, 3, 0, -1e9},
  };
  return values;
}

class DataShapesTest : public BackendTest {};

TEST_P(DataShapesTest, OneSessionAtManyValues) {
  const auto session = data_shapes::NewSession(device());
  for (int round = 0; round < 2; ++round) {
    for (const Values& values : AllValues()) {
      const Example example(values);
      ExpectOutputs(example, session->Run(example.Inputs()));
    }
  }
  if (gpu()) {
    EXPECT_GT(session->memory().graph_kernels, 0);
  }
}

TEST_P(DataShapesTest, IntoTheCallersMemory) {
  const auto session = data_shapes::NewSession(device());
  for (const Values& values : AllValues()) {
    const Example example(values);
    std::vector<float> top(example.Top().size(), -1);
    std::vector<float> sums(example.Sums().size(), -1);
    std::vector<float> head(example.Head().size(), -1);
    std::vector<int64_t> numbers(example.Numbers().size(), -1);
    const std::vector<MutableTensorView> outputs = {
        View<float>{top.data(), {values.k, kColumns}},
        View<float>{sums.data(), example.SumsShape()},
        View<float>{head.data(), {example.HeadRows(), kColumns}},
        View<int64_t>{numbers.data(), {static_cast<int64_t>(numbers.size())}}};
    session->Run(example.Inputs(), outputs);
    EXPECT_EQ(top, example.Top());
    EXPECT_EQ(sums, example.Sums());
    EXPECT_EQ(head, example.Head());
    EXPECT_EQ(numbers, example.Numbers());
  }
}

TEST_P(DataShapesTest, InputsWhereKernelsHaveThem) {
  const auto session = data_shapes::NewSession(device());
  for (const Values& values : AllValues()) {
    const Example example(values);
    DeviceTensors tensors(GetParam());
    std::vector<TensorView> inputs;
    for (const TensorView& view : example.Inputs()) {
      const auto* bytes = static_cast<const std::byte*>(view.data);
      const CaseTensor host{
          view.dtype, view.shape, {bytes, bytes + view.shape.elements() * SizeOf(view.dtype)}};
      const MutableTensorView there = tensors.Upload(host);
      inputs.emplace_back(there.data, there.dtype, there.shape, there.memory);
    }
    const std::span<const TensorView> outputs = session->Run(inputs);
    session->Synchronize();
    std::vector<CaseTensor> results;
    std::vector<TensorView> views;
    for (const TensorView& view : outputs) results.push_back(tensors.Download(view));
    for (const CaseTensor& result : results) views.push_back(result.view());
    ExpectOutputs(example, views);
  }
}

TEST_P(DataShapesTest, WhatDoesNotFitIsRefused) {
  const auto session = data_shapes::NewSession(device());
  const Example good({9, 3, 0, 5});
  const auto expect_refused = [&](const Values& values, const std::string& part) {
    const Example example(values);
    try {
      session->Run(example.Inputs());
      ADD_FAILURE() << "accepted, though " << part;
    } catch (const ShapeError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    ExpectOutputs(good, session->Run(good.Inputs()));
  };
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  expect_refused({9, 10, 0, 5}, "top");
  expect_refused({9, -1, 0, 5}, "top");
  expect_refused({9, kLargest, 0, 5}, "top");
  expect_refused({9, -kLargest - 1, 0, 5}, "top");
  expect_refused({9, 3, 2, 5}, "sum");
  expect_refused({9, 3, -3, 5}, "sum");
  expect_refused({9, 3, kLargest, 5}, "sum");
}

TEST_P(DataShapesTest, ACallersMemoryOfAnotherShapeIsRefused) {
  const auto session = data_shapes::NewSession(device());
  const Example example({9, 3, 0, 5});
  std::vector<float> memory(9 * kColumns);
  std::vector<int64_t> numbers(9);
  const std::vector<MutableTensorView> outputs = {
      View<float>{memory.data(), {3, kColumns}}, View<float>{memory.data() + 12, {1, kColumns}},
      View<float>{memory.data() + 16, {4, kColumns}}, View<int64_t>{numbers.data(), {2}}};
  EXPECT_THROW(session->Run(example.Inputs(), outputs), ShapeError);
  ExpectOutputs(example, session->Run(example.Inputs()));
}

TEST_P(DataShapesTest, KnownValuesAllocateNothing) {
  const auto session = data_shapes::NewSession(device());
  std::vector<Example> examples;
  for (const Values& values : AllValues()) examples.emplace_back(values);
  for (const Example& example : examples) session->Run(example.Inputs());
  const int64_t before = Allocations().allocations;
  for (const Example& example : examples) session->Run(example.Inputs());
  EXPECT_EQ(Allocations().allocations, before);
}

TEST_P(DataShapesTest, PreparedValuesAllocateNothing) {
  data_shapes::Session session(device());
  const Example example({9, 3, 0, 5});
  const auto count = static_cast<int64_t>(example.Numbers().size());
  session.Prepare({.N = 9, .k_0 = 3, .axis_0 = 0, .stop_row_0 = 5, .count = count});
  const int64_t before = Allocations().allocations;
  ExpectOutputs(example, session.core().Run(example.Inputs()));
  EXPECT_EQ(Allocations().allocations, before);
}

INSTANTIATE_TEST_SUITE_P(, DataShapesTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
