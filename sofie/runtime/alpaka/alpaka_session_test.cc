// A model on alpaka's CPU queues.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sofie/runtime/alpaka/session_testing.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/test_model.h"

namespace sofie::test_model {

std::unique_ptr<SessionCore> NewSessionFor(const Inputs*, const Device& device,
                                           const SessionOptions& options) {
  static const std::vector<std::byte> weights = WeightsFile();
  static const BackendProgram programs[] = {{Backend::kCpu, &EnqueueOnHost, &kCpuBackend},
                                            {Backend::kOpenMp, &EnqueueOnHost, &kOpenMpBackend}};
  return std::make_unique<SessionCore>(Info(), programs, weights, device, options);
}
namespace {

Inputs InputsOf(const Tensors& t) {
  return {{t.points.data(), {t.n, 2, t.p}}, {t.mask.data(), {t.n, t.p}}};
}
OutputBuffers OutputsOf(Tensors& t) {
  return {{t.copied.data(), {t.n, 2, t.p}},
          {t.mask_copy.data(), {t.n, t.p}},
          {t.tags.data(), {t.n, 4}}};
}

::alpaka::DevCpu Cpu() {
  return alpaka_version::DeviceAt<::alpaka::AccCpuSerial<alpaka_version::Dim, alpaka_version::Idx>>(
      0);
}

TEST(AlpakaSessionTest, ABlockingQueueIsDoneOnReturn) {
  ::alpaka::QueueCpuBlocking queue(Cpu());
  TestSession<::alpaka::QueueCpuBlocking> session(queue);
  for (const int64_t n : {3, 1, 0, 7}) {
    Tensors tensors(n, 5, static_cast<float>(n));
    session.Run(queue, InputsOf(tensors), OutputsOf(tensors));
    EXPECT_EQ(tensors.Mismatch(), "") << n;
  }
}

TEST(AlpakaSessionTest, ANonBlockingQueueKeepsTheOrder) {
  ::alpaka::QueueCpuNonBlocking queue(Cpu());
  TestSession<::alpaka::QueueCpuNonBlocking> session(queue);
  Tensors tensors(4, 6, 1);
  // Work that comes before and after in the queue.
  const std::vector<float> points = tensors.points;
  std::vector<float> result;
  ::alpaka::enqueue(queue, [&] { tensors.points.assign(points.size(), 42.0f); });
  session.Run(queue, InputsOf(tensors), OutputsOf(tensors));
  ::alpaka::enqueue(queue, [&] { result = tensors.copied; });
  ::alpaka::wait(queue);
  EXPECT_EQ(result, std::vector<float>(points.size(), 42.0f));
}

TEST(AlpakaSessionTest, RunsOnOpenMp) {
  ::alpaka::QueueCpuBlocking queue(Cpu());
  TestSession<::alpaka::QueueCpuBlocking> session(queue, Device::OpenMp(2));
  EXPECT_EQ(session.core().device().backend(), Backend::kOpenMp);
  Tensors tensors(2, 3, 1);
  session.Run(queue, InputsOf(tensors), OutputsOf(tensors));
  EXPECT_EQ(tensors.Mismatch(), "");
}

TEST(AlpakaSessionTest, ErrorsAreNotLost) {
  Tensors good(2, 3, 1);
  Inputs contradicting = InputsOf(good);
  contradicting.mask.shape = {2, 4};

  ::alpaka::QueueCpuBlocking blocking(Cpu());
  TestSession<::alpaka::QueueCpuBlocking> at_once(blocking);
  EXPECT_THROW(at_once.Run(blocking, contradicting, OutputsOf(good)), ShapeError);
  at_once.Run(blocking, InputsOf(good), OutputsOf(good));
  EXPECT_EQ(good.Mismatch(), "");

  ::alpaka::QueueCpuNonBlocking queue(Cpu());
  TestSession<::alpaka::QueueCpuNonBlocking> later(queue);
  later.Run(queue, contradicting, OutputsOf(good));
  ::alpaka::wait(queue);
  EXPECT_THROW(later.Check(), ShapeError);
  later.Check();
}

TEST(AlpakaSessionTest, RefusesAnotherQueueAndAnotherDevice) {
  ::alpaka::QueueCpuBlocking queue(Cpu());
  ::alpaka::QueueCpuBlocking other(Cpu());
  TestSession<::alpaka::QueueCpuBlocking> session(queue);
  Tensors tensors(1, 2, 1);
  EXPECT_THROW(session.Run(other, InputsOf(tensors), OutputsOf(tensors)), ArgumentError);
  EXPECT_THROW(TestSession<::alpaka::QueueCpuBlocking>(queue, Device::Cuda(0)), ArgumentError);
}

}  // namespace
}  // namespace sofie::test_model
