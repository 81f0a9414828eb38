// Everything that a session throws. Each message says what is wrong and what to do about it; the
// session stays usable after any of them but a DeviceError that tells to restart the process.
#ifndef SOFIE_RUNTIME_ERROR_H_
#define SOFIE_RUNTIME_ERROR_H_

#include <stdexcept>
#include <string>

namespace sofie {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A rank or an extent that contradicts the model or another input.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// An element type that is not the model's.
class DTypeError : public Error {
 public:
  using Error::Error;
};

// Any other argument that cannot be used: null data, a wrong number of tensors, overlapping
// outputs, device memory given to a CPU session.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

// The backend asked for is not in this build, or this machine has no such device.
class BackendError : public Error {
 public:
  using Error::Error;
};

// A kernel, a library call or the driver failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// An allocation failed or would pass SessionOptions::memory_limit.
class MemoryError : public Error {
 public:
  using Error::Error;
};

// The weights are absent, truncated, corrupt or of another graph.
class WeightsError : public Error {
 public:
  using Error::Error;
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_ERROR_H_
