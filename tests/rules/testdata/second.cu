#include "tests/rules/testdata/kernels.h"
#include "tests/rules/testdata/launch.h"

namespace sofie::rules_test {

struct PlusTwo {
  __device__ int operator()(int value) const { return value + 2; }
};

int AddTwo(int value) { return Call(PlusTwo{}, value); }

}  // namespace sofie::rules_test
