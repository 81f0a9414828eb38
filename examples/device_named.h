// The device that a program's --device names.
#ifndef EXAMPLES_DEVICE_NAMED_H_
#define EXAMPLES_DEVICE_NAMED_H_

#include <string>

#include "sofie/runtime/device.h"

namespace examples {

// Throws std::runtime_error for another name than cpu, openmp or cuda.
sofie::Device DeviceNamed(const std::string& name);

}  // namespace examples

#endif  // EXAMPLES_DEVICE_NAMED_H_
