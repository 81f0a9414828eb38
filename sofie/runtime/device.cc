#include "sofie/runtime/device.h"

#include "sofie/runtime/error.h"

namespace sofie {

const char* NameOf(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kOpenMp:
      return "openmp";
    case Backend::kCuda:
      return "cuda";
  }
  return "unknown";
}

Device Device::Cpu() { return Device(Backend::kCpu, 0, nullptr, 1); }

Device Device::OpenMp(int threads) {
  if (threads < 0) {
    throw ArgumentError("Device::OpenMp: " + std::to_string(threads) +
                        " threads; give a positive number, or 0 for the default");
  }
  return Device(Backend::kOpenMp, 0, nullptr, threads);
}

Device Device::Cuda(int index, void* stream) {
  if (index < 0) {
    throw ArgumentError("Device::Cuda: device index " + std::to_string(index) +
                        " is negative; devices count from 0");
  }
  return Device(Backend::kCuda, index, stream, 0);
}

std::string Device::ToString() const {
  switch (backend_) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kOpenMp:
      return threads_ == 0 ? "openmp" : "openmp (" + std::to_string(threads_) + " threads)";
    case Backend::kCuda:
      return "cuda:" + std::to_string(index_);
  }
  return "unknown";
}

}  // namespace sofie
