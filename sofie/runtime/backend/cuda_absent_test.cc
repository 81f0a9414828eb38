// What a session says where there is no GPU. CUDA is told to show none, so that this holds on any
// machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

TEST(CudaAbsentTest, SaysWhatToDo) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  try {
    kCudaBackend.create(Device::Cuda());
    FAIL() << "a device was found";
  } catch (const BackendError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("cuda:0: this machine offers no CUDA device (", 0), 0u) << message;
    EXPECT_NE(message.find("or use Device::Cpu() or Device::OpenMp()"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace sofie
