// A model on an alpaka queue of CUDA.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sofie/runtime/alpaka/session_testing.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"

namespace sofie::test_model {

inline void Check(cudaError_t status) {
  if (status != cudaSuccess) throw DeviceError(cudaGetErrorString(status));
}

inline void CopyOnDevice(LaunchContext& context, void* to, const void* from, size_t bytes) {
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                        static_cast<cudaStream_t>(context.queue())));
}

inline void EnqueueOnDevice(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                            const std::byte* weights) {
  Enqueue(&CopyOnDevice, context, symbols, buffers, weights);
}

std::unique_ptr<SessionCore> NewSessionFor(const Inputs*, const Device& device,
                                           const SessionOptions& options) {
  static const std::vector<std::byte> weights = WeightsFile();
  static const BackendProgram programs[] = {{Backend::kCuda, &EnqueueOnDevice, &kCudaBackend}};
  return std::make_unique<SessionCore>(Info(), programs, weights, device, options);
}

// Floats on the device, written and read in a stream.
class DeviceFloats {
 public:
  DeviceFloats(const std::vector<float>& values, cudaStream_t stream)
      : elements_(values.size()), stream_(stream) {
    Check(cudaMalloc(&data_, elements_ * sizeof(float)));
    Check(cudaMemcpyAsync(data_, values.data(), elements_ * sizeof(float), cudaMemcpyHostToDevice,
                          stream_));
  }
  ~DeviceFloats() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  float* data() { return static_cast<float*>(data_); }
  std::vector<float> Read() {
    std::vector<float> values(elements_);
    Check(cudaMemcpyAsync(values.data(), data_, elements_ * sizeof(float), cudaMemcpyDeviceToHost,
                          stream_));
    Check(cudaStreamSynchronize(stream_));
    return values;
  }

 private:
  size_t elements_;
  cudaStream_t stream_;
  void* data_ = nullptr;
};

using Queue = ::alpaka::QueueCudaRtNonBlocking;

inline Queue NewQueue() {
  using Acc = ::alpaka::AccGpuCudaRt<alpaka_version::Dim, alpaka_version::Idx>;
  return Queue(alpaka_version::DeviceAt<Acc>(0));
}

TEST(AlpakaSessionCudaTest, RunsInTheQueuesStream) {
  Queue queue = NewQueue();
  const cudaStream_t stream = ::alpaka::getNativeHandle(queue);
  TestSession<Queue> session(queue);
  for (const int64_t n : {3, 1, 7}) {
    Tensors t(n, 5, static_cast<float>(n));
    DeviceFloats points(t.points, stream);
    DeviceFloats mask(t.mask, stream);
    DeviceFloats copied(t.copied, stream);
    DeviceFloats mask_copy(t.mask_copy, stream);
    DeviceFloats tags(t.tags, stream);
    session.Run(queue, {{points.data(), {n, 2, 5}}, {mask.data(), {n, 5}}},
                {{copied.data(), {n, 2, 5}}, {mask_copy.data(), {n, 5}}, {tags.data(), {n, 4}}});
    t.copied = copied.Read();
    t.mask_copy = mask_copy.Read();
    t.tags = tags.Read();
    EXPECT_EQ(t.Mismatch(), "") << n;
  }
}

TEST(AlpakaSessionCudaTest, ErrorsAreThrownAtOnce) {
  Queue queue = NewQueue();
  Queue other = NewQueue();
  TestSession<Queue> session(queue);
  const cudaStream_t stream = ::alpaka::getNativeHandle(queue);
  DeviceFloats memory(std::vector<float>(64, 0.0f), stream);
  float* const data = memory.data();
  const OutputBuffers outputs = {{data + 16, {1, 2, 2}}, {data + 24, {1, 2}}, {data + 32, {1, 4}}};
  EXPECT_THROW(session.Run(queue, {{data, {1, 2, 2}}, {data + 8, {1, 3}}}, outputs), ShapeError);
  EXPECT_THROW(session.Run(other, {{data, {1, 2, 2}}, {data + 8, {1, 2}}}, outputs), ArgumentError);
  EXPECT_THROW(TestSession<Queue>(queue, Device::Cpu()), ArgumentError);
  session.Run(queue, {{data, {1, 2, 2}}, {data + 8, {1, 2}}}, outputs);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

}  // namespace sofie::test_model
