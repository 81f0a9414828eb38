#ifndef TESTS_RULES_TESTDATA_KERNELS_H_
#define TESTS_RULES_TESTDATA_KERNELS_H_

namespace sofie::rules_test {

// Each adds its own number to `value` on the GPU. Throws std::runtime_error if that fails.
int AddOne(int value);
int AddTwo(int value);

}  // namespace sofie::rules_test

#endif  // TESTS_RULES_TESTDATA_KERNELS_H_
