// Runs a functor with one GPU thread.
#ifndef TESTS_RULES_TESTDATA_LAUNCH_H_
#define TESTS_RULES_TESTDATA_LAUNCH_H_

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace sofie::rules_test {

inline void Check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

template <class Function>
__global__ void CallWithOneThread(Function function, int value, int* result) {
  *result = function(value);
}

template <class Function>
int Call(Function function, int value) {
  int* result = nullptr;
  Check(cudaMalloc(&result, sizeof(int)));
  CallWithOneThread<<<1, 1>>>(function, value, result);
  int sum = 0;
  Check(cudaGetLastError());
  Check(cudaMemcpy(&sum, result, sizeof(int), cudaMemcpyDeviceToHost));
  Check(cudaFree(result));
  return sum;
}

}  // namespace sofie::rules_test

#endif  // TESTS_RULES_TESTDATA_LAUNCH_H_
