#include "examples/device_named.h"

#include <stdexcept>

namespace examples {

sofie::Device DeviceNamed(const std::string& name) {
  if (name == "cpu") return sofie::Device::Cpu();
  if (name == "openmp") return sofie::Device::OpenMp();
  if (name == "cuda") return sofie::Device::Cuda();
  throw std::runtime_error("--device=" + name + " is not one of cpu, openmp, cuda.");
}

}  // namespace examples
