#include "benchmarks/device_memory.h"
#include "sofie/runtime/error.h"

namespace sofie::benchmarks {
namespace {

[[noreturn]] void Refuse() {
  throw BackendError("this program was built without CUDA; build it with --config=cuda");
}

}  // namespace

Stream::Stream(bool cuda) {
  if (cuda) Refuse();
}

Stream::~Stream() = default;

void Stream::Synchronize() const {}

DeviceTimer::DeviceTimer(const Stream& stream) : stream_(stream.handle()) {}

DeviceTimer::~DeviceTimer() = default;

void DeviceTimer::Start() {}

void DeviceTimer::Stop() {}

double DeviceTimer::Microseconds() const { return 0; }

DeviceCopy::DeviceCopy(const TensorView&) { Refuse(); }

DeviceCopy::~DeviceCopy() = default;

DeviceCopy::DeviceCopy(DeviceCopy&&) noexcept = default;

}  // namespace sofie::benchmarks
