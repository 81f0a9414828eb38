#include "tests/rules/testdata/kernels.h"
#include "tests/rules/testdata/launch.h"

namespace sofie::rules_test {

struct PlusOne {
  __device__ int operator()(int value) const { return value + 1; }
};

int AddOne(int value) { return Call(PlusOne{}, value); }

}  // namespace sofie::rules_test
