// Calls a cuda_library through C++: its objects link, register themselves and run.
#include "tests/rules/testdata/kernels.h"

#include "gtest/gtest.h"

namespace sofie::rules_test {
namespace {

TEST(CudaLibrary, KernelsOfEverySourceRun) {
  EXPECT_EQ(AddOne(40), 41);
  EXPECT_EQ(AddTwo(40), 42);
}

}  // namespace
}  // namespace sofie::rules_test
