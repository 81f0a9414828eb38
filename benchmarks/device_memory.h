// A stream and memory of a GPU, for programs that are built with or without CUDA.
#ifndef BENCHMARKS_DEVICE_MEMORY_H_
#define BENCHMARKS_DEVICE_MEMORY_H_

#include "sofie/runtime/view.h"

namespace sofie::benchmarks {

// A CUDA stream of its own, or nothing on a CPU. Throws BackendError in a build without CUDA,
// DeviceError if the driver fails.
class Stream {
 public:
  explicit Stream(bool cuda);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void* handle() const { return handle_; }
  // Waits for the work in the stream.
  void Synchronize() const;

 private:
  void* handle_ = nullptr;
};

// The time between two points of a stream on the device; nothing on a CPU. Throws as Stream does.
class DeviceTimer {
 public:
  explicit DeviceTimer(const Stream& stream);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  void Start();
  void Stop();
  // Between the last Start and Stop, when both have passed; 0 on a CPU.
  double Microseconds() const;

 private:
  void* stream_;
  void* events_[2] = {};
};

// A copy of host memory on the current GPU. Throws as Stream does.
class DeviceCopy {
 public:
  explicit DeviceCopy(const TensorView& host);
  ~DeviceCopy();
  DeviceCopy(DeviceCopy&& other) noexcept;
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  TensorView view() const { return view_; }

 private:
  TensorView view_;
};

}  // namespace sofie::benchmarks

#endif  // BENCHMARKS_DEVICE_MEMORY_H_
