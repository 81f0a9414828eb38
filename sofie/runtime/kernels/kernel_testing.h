// What the kernel tests share: a context and arrays on any backend, random data, comparisons.
//
// The tests are headers, included by one translation unit for the CPU backends and one, compiled by
// nvcc, for CUDA. So they have no anonymous namespaces.
#ifndef SOFIE_RUNTIME_KERNELS_KERNEL_TESTING_H_
#define SOFIE_RUNTIME_KERNELS_KERNEL_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/kernels/backend_tags.h"
#include "sofie/runtime/kernels/launcher.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace sofie::kernels::testing {

#if defined(__CUDACC__)
using TestBackends = ::testing::Types<Cuda>;

inline void CheckCuda(cudaError_t status) {
  if (status != cudaSuccess) throw DeviceError(cudaGetErrorString(status));
}
#else
using TestBackends = ::testing::Types<CpuSerial, CpuOpenMp>;
#endif

// A launch context and what it needs.
template <class B>
class TestContext {
 public:
  TestContext() {
#if defined(__CUDACC__)
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CheckCuda(cudaMalloc(&workspace_, kWorkspaceBytes));
    context_ = std::make_unique<LaunchContext>(LaunchContext::Config{B::kBackend, 0, stream_, 1},
                                               NewCudaBlas(0, stream_));
    context_->set_workspace(workspace_, kWorkspaceBytes);
#else
    const int threads = B::kBackend == Backend::kOpenMp ? 3 : 1;
    context_ = std::make_unique<LaunchContext>(
        LaunchContext::Config{B::kBackend, 0, nullptr, threads}, NewCpuBlas(threads));
    workspace_.resize(kHostWorkspaceBytesPerThread * threads);
    context_->set_workspace(workspace_.data(), workspace_.size());
#endif
  }
  ~TestContext() {
    context_.reset();
#if defined(__CUDACC__)
    EXPECT_EQ(cudaFree(workspace_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
#endif
  }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;

  LaunchContext& operator*() { return *context_; }
  LaunchContext* operator->() { return context_.get(); }
  void Synchronize() {
#if defined(__CUDACC__)
    CheckCuda(cudaStreamSynchronize(stream_));
#endif
  }
#if defined(__CUDACC__)
  cudaStream_t stream() const { return stream_; }
#endif

 private:
  std::unique_ptr<LaunchContext> context_;
#if defined(__CUDACC__)
  static constexpr size_t kWorkspaceBytes = size_t{4} << 20;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
#else
  std::vector<std::byte> workspace_;
#endif
};

// Elements where the backend's kernels can reach them. bool is held as bytes.
template <class B, class T>
class Array {
 public:
  using Held = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

  explicit Array(const std::vector<Held>& values) : values_(values) {
#if defined(__CUDACC__)
    CheckCuda(cudaMalloc(&device_, bytes() + 1));
    CheckCuda(cudaMemcpy(device_, values_.data(), bytes(), cudaMemcpyHostToDevice));
    // The copy may still be on its way, and the context's stream does not wait for it.
    CheckCuda(cudaDeviceSynchronize());
#endif
  }
  // Filled with bytes that are NaN, or -1, to the tests.
  explicit Array(int64_t elements) : Array(Poison(elements)) {}
  ~Array() {
#if defined(__CUDACC__)
    EXPECT_EQ(cudaFree(device_), cudaSuccess);
#endif
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() {
#if defined(__CUDACC__)
    return static_cast<T*>(device_);
#else
    return reinterpret_cast<T*>(values_.data());
#endif
  }
  // The elements, after all that was put into the context's queue.
  const std::vector<Held>& Read(TestContext<B>& context) {
    context.Synchronize();
#if defined(__CUDACC__)
    CheckCuda(cudaMemcpy(values_.data(), device_, bytes(), cudaMemcpyDeviceToHost));
#endif
    return values_;
  }

 private:
  static std::vector<Held> Poison(int64_t elements) {
    std::vector<Held> values(static_cast<size_t>(elements));
    if (elements > 0) std::memset(values.data(), 0xff, values.size() * sizeof(Held));
    return values;
  }
  size_t bytes() const { return values_.size() * sizeof(Held); }

  std::vector<Held> values_;
#if defined(__CUDACC__)
  void* device_ = nullptr;
#endif
};

// Numbers in [-1, 1), or small integers.
template <class T>
std::vector<T> RandomVector(int64_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(elements));
  for (T& value : values) {
    if constexpr (std::is_class_v<T>) {
      value = T(std::uniform_real_distribution<float>(-1, 1)(random));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = std::uniform_real_distribution<T>(-1, 1)(random);
    } else {
      value = static_cast<T>(std::uniform_int_distribution<int>(0, 20)(random));
    }
  }
  return values;
}

// ‖a - b‖ / ‖b‖, or ‖a - b‖ if b is zero.
// How much larger errors may be than in float arithmetic.
template <class B>
constexpr double PrecisionLoss(Precision precision) {
  if (!B::kGpu || precision == Precision::kFloat32) return 1;
  return precision == Precision::kBfloat16 ? 1e4 : 1e3;
}

template <class T>
double RelativeError(const std::vector<T>& a, const std::vector<double>& b) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm == 0 ? std::sqrt(error) : std::sqrt(error / norm);
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_KERNEL_TESTING_H_
