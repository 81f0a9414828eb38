// A model among other work on an alpaka queue, through its second header: kernels of the caller's
// before and after it, in the caller's memory, and one wait at the end; and one of its kernels in a
// launch of the caller's. alpaka_model_test.cc
// compiles these for the CPU's queues and alpaka_model_cuda_test.cu for CUDA's.
#ifndef TESTS_ALPAKA_MODEL_TESTS_H_
#define TESTS_ALPAKA_MODEL_TESTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "models/particle_net_alpaka.h"
#include "rules/private/model_case.h"
#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"
#include "tests/strided_inputs_kernels.h"

namespace sofie::alpaka_model_tests {

using alpaka_version::Dim;
using alpaka_version::Idx;
using alpaka_version::Vec;

#if defined(__CUDACC__)
using Acc = ::alpaka::AccGpuCudaRt<Dim, Idx>;
using Queues = testing::Types<::alpaka::QueueCudaRtNonBlocking, ::alpaka::QueueCudaRtBlocking>;
#else
using Acc = ::alpaka::AccCpuSerial<Dim, Idx>;
using Queues = testing::Types<::alpaka::QueueCpuNonBlocking, ::alpaka::QueueCpuBlocking>;
#endif

using DeviceType = ::alpaka::Dev<Acc>;
using Buffer = ::alpaka::Buf<DeviceType, float, Dim, Idx>;

// Multiplies by two, which floating point does exactly.
struct TwiceKernel {
  template <class TAcc>
  ALPAKA_FN_ACC void operator()(const TAcc& acc, const float* x, float* out, Idx count) const {
    const Idx first = ::alpaka::getIdx<::alpaka::Grid, ::alpaka::Threads>(acc)[0];
    const Idx step = ::alpaka::getWorkDiv<::alpaka::Grid, ::alpaka::Threads>(acc)[0];
    for (Idx i = first; i < count; i += step) out[i] = 2.0f * x[i];
  }
};

template <class TQueue>
void EnqueueTwice(TQueue& queue, const float* x, float* out, Idx count) {
  const alpaka_version::WorkDiv division(Vec(Idx{8}), Vec(Idx{1}), Vec(Idx{1}));
  ::alpaka::enqueue(queue, ::alpaka::createTaskKernel<Acc>(division, TwiceKernel{}, x, out, count));
}

inline Buffer NewBuffer(int64_t elements) {
  return ::alpaka::allocBuf<float, Idx>(alpaka_version::DeviceAt<Acc>(0),
                                        Vec(static_cast<Idx>(std::max<int64_t>(elements, 1))));
}

// One case in the device's memory. All its copies go through the queue.
template <class TQueue>
class CaseOnDevice {
 public:
  CaseOnDevice(TQueue& queue, const ModelCase& model_case) : queue_(queue), case_(model_case) {
    for (const CaseTensor& input : model_case.inputs) {
      halves_.push_back(Halves(input));
      buffers_.push_back(NewBuffer(input.shape.elements()));
    }
    result_.resize(static_cast<size_t>(expected().shape.elements()), -1.0f);
    doubled_ = result_;
  }

  // Uploads half of each input and doubles it there.
  void EnqueueInputs() {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const auto count = static_cast<Idx>(halves_[i].size());
      if (count == 0) continue;
      auto host = ::alpaka::createView(host_, halves_[i].data(), Vec(count));
      ::alpaka::memcpy(queue_, buffers_[i], host, Vec(count));
      float* const data = ::alpaka::getPtrNative(buffers_[i]);
      EnqueueTwice(queue_, data, data, count);
    }
  }
  // Doubles the outputs into another buffer and downloads both.
  void EnqueueOutputs() {
    const auto count = static_cast<Idx>(result_.size());
    if (count == 0) return;
    EnqueueTwice(queue_, ::alpaka::getPtrNative(output_), ::alpaka::getPtrNative(twice_), count);
    auto result = ::alpaka::createView(host_, result_.data(), Vec(count));
    auto doubled = ::alpaka::createView(host_, doubled_.data(), Vec(count));
    ::alpaka::memcpy(queue_, result, output_, Vec(count));
    ::alpaka::memcpy(queue_, doubled, twice_, Vec(count));
  }
  // After the queue's work is done.
  void ExpectRight() const {
    const TensorView result(result_.data(), DType::kFloat32, expected().shape);
    EXPECT_EQ(Compare(result, case_.outputs[0]), "") << case_.description;
    for (size_t i = 0; i < result_.size(); ++i) EXPECT_EQ(doubled_[i], 2.0f * result_[i]) << i;
  }

  particle_net::Inputs inputs() {
    return {.pf_points = Input(0),
            .pf_features = Input(1),
            .pf_mask = Input(2),
            .sv_points = Input(3),
            .sv_features = Input(4),
            .sv_mask = Input(5)};
  }
  particle_net::OutputBuffers outputs() {
    return {.softmax = {::alpaka::getPtrNative(output_), expected().shape}};
  }

 private:
  const CaseTensor& expected() const { return case_.outputs[0].tensor; }
  View<const float> Input(size_t i) {
    return {::alpaka::getPtrNative(buffers_[i]), case_.inputs[i].shape};
  }
  static std::vector<float> Halves(const CaseTensor& tensor) {
    std::vector<float> halves(static_cast<size_t>(tensor.shape.elements()));
    if (!halves.empty()) std::memcpy(halves.data(), tensor.data.data(), tensor.data.size());
    for (float& value : halves) value *= 0.5f;
    return halves;
  }

  TQueue& queue_;
  const ModelCase& case_;
  ::alpaka::DevCpu host_ = alpaka_version::DeviceAt<::alpaka::DevCpu>(0);
  std::vector<std::vector<float>> halves_;
  std::vector<Buffer> buffers_;
  Buffer output_ = NewBuffer(expected().shape.elements());
  Buffer twice_ = NewBuffer(expected().shape.elements());
  std::vector<float> result_;
  std::vector<float> doubled_;
};

inline std::vector<ModelCase> ReadCases() {
  std::vector<ModelCase> cases;
  for (const char* sizes : {"N=7,n_pf=33,n_sv=3", "N=1,n_pf=17,n_sv=0", "N=0,n_pf=100,n_sv=10",
                            "N=1,n_pf=100,n_sv=10", "N=1,n_pf=50,n_sv=5"}) {
    cases.push_back(ReadModelCase("tests/particle_net_test_cases/" + std::string(sizes) + ".npz",
                                  particle_net::Info()));
  }
  return cases;
}

template <class TQueue>
class AlpakaModelTest : public testing::Test {};
TYPED_TEST_SUITE(AlpakaModelTest, Queues);

TYPED_TEST(AlpakaModelTest, AmongTheCallersKernels) {
  TypeParam queue(alpaka_version::DeviceAt<Acc>(0));
  particle_net::AlpakaSession<TypeParam> session(queue);
  for (const ModelCase& model_case : ReadCases()) {
    CaseOnDevice<TypeParam> tensors(queue, model_case);
    tensors.EnqueueInputs();
    session.Run(queue, tensors.inputs(), tensors.outputs());
    tensors.EnqueueOutputs();
    ::alpaka::wait(queue);
    session.Check();
    tensors.ExpectRight();
  }
}

// All cases are in the queue before anyone waits: they share the session's memory one after
// another.
TYPED_TEST(AlpakaModelTest, SeveralRunsInTheQueue) {
  TypeParam queue(alpaka_version::DeviceAt<Acc>(0));
  particle_net::AlpakaSession<TypeParam> session(queue);
  const std::vector<ModelCase> cases = ReadCases();
  std::vector<CaseOnDevice<TypeParam>> tensors;
  tensors.reserve(cases.size());
  for (const ModelCase& model_case : cases) tensors.emplace_back(queue, model_case);
  for (CaseOnDevice<TypeParam>& one : tensors) {
    one.EnqueueInputs();
    session.Run(queue, one.inputs(), one.outputs());
    one.EnqueueOutputs();
  }
  ::alpaka::wait(queue);
  session.Check();
  for (const CaseOnDevice<TypeParam>& one : tensors) one.ExpectRight();
}

TYPED_TEST(AlpakaModelTest, KnownSizesAllocateNothing) {
  TypeParam queue(alpaka_version::DeviceAt<Acc>(0));
  particle_net::AlpakaSession<TypeParam> session(queue);
  const ModelCase model_case = ReadCases().front();
  CaseOnDevice<TypeParam> tensors(queue, model_case);
  session.core().Prepare(std::vector<int64_t>{7, 33, 3});
  const int64_t before = Allocations().allocations;
  tensors.EnqueueInputs();
  session.Run(queue, tensors.inputs(), tensors.outputs());
  tensors.EnqueueOutputs();
  ::alpaka::wait(queue);
  session.Check();
  EXPECT_EQ(Allocations().allocations, before);
  tensors.ExpectRight();
}

TYPED_TEST(AlpakaModelTest, ErrorsLeaveTheSessionUsable) {
  TypeParam queue(alpaka_version::DeviceAt<Acc>(0));
  particle_net::AlpakaSession<TypeParam> session(queue);
  const ModelCase model_case = ReadCases().front();
  CaseOnDevice<TypeParam> tensors(queue, model_case);
  particle_net::Inputs contradicting = tensors.inputs();
  contradicting.sv_mask.shape = {7, 1, 4};
  EXPECT_THROW(
      {
        session.Run(queue, contradicting, tensors.outputs());
        ::alpaka::wait(queue);
        session.Check();
      },
      ShapeError);
  tensors.EnqueueInputs();
  session.Run(queue, tensors.inputs(), tensors.outputs());
  tensors.EnqueueOutputs();
  ::alpaka::wait(queue);
  session.Check();
  tensors.ExpectRight();
}

// A kernel of a model in a launch of the caller's: every thread finds its points itself.
struct PointsKernel {
  template <class TAcc, class TBody>
  ALPAKA_FN_ACC void operator()(const TAcc& acc, const TBody& body, int64_t rows, int64_t channels,
                                int64_t columns) const {
    const auto first = ::alpaka::getIdx<::alpaka::Grid, ::alpaka::Threads>(acc)[0];
    const auto step = ::alpaka::getWorkDiv<::alpaka::Grid, ::alpaka::Threads>(acc)[0];
    for (int64_t i = first; i < rows * channels * columns; i += step) {
      body(i / columns / channels, i / columns % channels, i % columns);
    }
  }
};

// Without a session and without the library: the header of the kernels alone.
TYPED_TEST(AlpakaModelTest, ScheduledByTheCaller) {
  constexpr int64_t kRows = 2;
  constexpr int64_t kChannels = 3;
  constexpr int64_t kColumns = 5;
  constexpr int64_t kPoints = kRows * kChannels * kColumns;
  std::vector<float> x(kPoints);  // transposed: rows are innermost
  for (int64_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(i);
  std::vector<float> b = {100, 200, 300, 400, 500};
  std::vector<float> two = {2};
  std::vector<float> moved(kPoints, -1);

  TypeParam queue(alpaka_version::DeviceAt<Acc>(0));
  const auto host = alpaka_version::DeviceAt<::alpaka::DevCpu>(0);
  std::vector<Buffer> buffers;
  for (std::vector<float>* values : {&x, &b, &two, &moved}) {
    const auto count = static_cast<Idx>(values->size());
    buffers.push_back(NewBuffer(count));
    auto view = ::alpaka::createView(host, values->data(), Vec(count));
    ::alpaka::memcpy(queue, buffers.back(), view, Vec(count));
  }
  const strided_inputs::kernels::Move_2<int64_t> body = {
      .in_x = ::alpaka::getPtrNative(buffers[0]),
      .p0_2 = 1,
      .p0_1 = kRows,
      .p0_0 = kChannels * kRows,
      .two = ::alpaka::getPtrNative(buffers[2]),
      .in_b = ::alpaka::getPtrNative(buffers[1]),
      .out_moved = ::alpaka::getPtrNative(buffers[3]),
      .x3_by_s1 = kChannels * kColumns,
      .s1 = kColumns,
  };
  const alpaka_version::WorkDiv division(Vec(Idx{4}), Vec(Idx{1}), Vec(Idx{1}));
  ::alpaka::enqueue(queue, ::alpaka::createTaskKernel<Acc>(division, PointsKernel{}, body, kRows,
                                                           kChannels, kColumns));
  auto result = ::alpaka::createView(host, moved.data(), Vec(static_cast<Idx>(kPoints)));
  ::alpaka::memcpy(queue, result, buffers[3], Vec(static_cast<Idx>(kPoints)));
  ::alpaka::wait(queue);
  for (int64_t i = 0; i < kPoints; ++i) {
    const int64_t row = i / kColumns / kChannels;
    const int64_t channel = i / kColumns % kChannels;
    const int64_t column = i % kColumns;
    const float value = x[row + channel * kRows + column * kChannels * kRows];
    EXPECT_EQ(moved[i], 2 * value + b[column]) << i;
  }
}

}  // namespace sofie::alpaka_model_tests

#endif  // TESTS_ALPAKA_MODEL_TESTS_H_
