// The C++ that README.md shows for memory on a GPU; compiled in builds with CUDA, run on a GPU.
#include <cuda_runtime.h>

#include <cstdlib>
#include <iostream>

#include "models/mlp.h"

int main() {
  cudaStream_t stream = nullptr;
  float* features = nullptr;
  float* probabilities = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaMalloc(&features, 3 * 16 * sizeof(float)) != cudaSuccess ||
      cudaMalloc(&probabilities, 3 * 5 * sizeof(float)) != cudaSuccess) {
    std::cerr << "no GPU\n";
    return EXIT_FAILURE;
  }
  cudaMemsetAsync(features, 0, 3 * 16 * sizeof(float), stream);
  // [device]
  mlp::Session session(sofie::Device::Cuda(0, stream));
  session.Run({.features = {features, {3, 16}, sofie::Memory::kDevice}},
              {.probabilities = {probabilities, {3, 5}, sofie::Memory::kDevice}});
  // The work is in the stream; nothing has waited for it.
  // [/device]
  float first[5] = {};
  cudaMemcpyAsync(first, probabilities, sizeof(first), cudaMemcpyDeviceToHost, stream);
  if (cudaStreamSynchronize(stream) != cudaSuccess) return EXIT_FAILURE;
  const float sum = first[0] + first[1] + first[2] + first[3] + first[4];
  std::cout << "sum of probabilities: " << sum << "\n";
  return sum > 0.999f && sum < 1.001f ? EXIT_SUCCESS : EXIT_FAILURE;
}
