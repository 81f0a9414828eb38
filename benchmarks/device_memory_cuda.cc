#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "benchmarks/device_memory.h"
#include "sofie/runtime/error.h"

namespace sofie::benchmarks {
namespace {

void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw DeviceError(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

}  // namespace

Stream::Stream(bool cuda) {
  if (!cuda) return;
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  handle_ = stream;
}

Stream::~Stream() {
  if (handle_ != nullptr) cudaStreamDestroy(static_cast<cudaStream_t>(handle_));
}

void Stream::Synchronize() const {
  if (handle_ == nullptr) return;
  Check(cudaStreamSynchronize(static_cast<cudaStream_t>(handle_)), "waiting for a stream");
}

DeviceTimer::DeviceTimer(const Stream& stream) : stream_(stream.handle()) {
  if (stream_ == nullptr) return;
  for (void*& event : events_) {
    cudaEvent_t made = nullptr;
    Check(cudaEventCreate(&made), "making an event");
    event = made;
  }
}

DeviceTimer::~DeviceTimer() {
  for (void* event : events_) {
    if (event != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
}

void DeviceTimer::Start() {
  if (stream_ == nullptr) return;
  Check(cudaEventRecord(static_cast<cudaEvent_t>(events_[0]), static_cast<cudaStream_t>(stream_)),
        "recording an event");
}

void DeviceTimer::Stop() {
  if (stream_ == nullptr) return;
  Check(cudaEventRecord(static_cast<cudaEvent_t>(events_[1]), static_cast<cudaStream_t>(stream_)),
        "recording an event");
}

double DeviceTimer::Microseconds() const {
  if (stream_ == nullptr) return 0;
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(events_[0]),
                             static_cast<cudaEvent_t>(events_[1])),
        "timing events");
  return 1e3 * milliseconds;
}

DeviceCopy::DeviceCopy(const TensorView& host) : view_(host) {
  const size_t bytes = static_cast<size_t>(host.shape.elements()) * SizeOf(host.dtype);
  void* data = nullptr;
  Check(cudaMalloc(&data, bytes + 1), "allocating an input");
  view_.data = data;
  view_.memory = Memory::kDevice;
  Check(cudaMemcpy(data, host.data, bytes, cudaMemcpyHostToDevice), "copying an input");
}

DeviceCopy::~DeviceCopy() { cudaFree(const_cast<void*>(view_.data)); }

DeviceCopy::DeviceCopy(DeviceCopy&& other) noexcept
    : view_(std::exchange(other.view_, TensorView{})) {}

}  // namespace sofie::benchmarks
