// The runtime on a GPU, with copies as its kernels. Needs an NVIDIA GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sofie/runtime/heap_counter.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/test_model.h"
#include "sofie/runtime/testing.h"

namespace sofie {
namespace {

using test_model::Info;
using test_model::Tensors;

void Check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

thread_local bool fail = false;
thread_local int enqueued = 0;
thread_local int spoil = 0;  // how many captures to make invalid

void CopyOnDevice(LaunchContext& context, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                        static_cast<cudaStream_t>(context.queue())));
}

void EnqueueOnDevice(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                     const std::byte* weights) {
  ++enqueued;
  // The workspace belongs to the steps: overwriting it harms nothing.
  Check(cudaMemsetAsync(context.workspace(), 0xee, context.workspace_bytes(),
                        static_cast<cudaStream_t>(context.queue())));
  test_model::Enqueue(&CopyOnDevice, context, symbols, buffers, weights);
  if (fail) throw std::runtime_error("launch failed");
  if (spoil > 0) {
    --spoil;
    // Not allowed while the stream captures.
    EXPECT_NE(cudaStreamSynchronize(static_cast<cudaStream_t>(context.queue())), cudaSuccess);
  }
}

constexpr BackendProgram kPrograms[] = {{Backend::kCuda, &EnqueueOnDevice, &kCudaBackend}};

class DeviceArray {
 public:
  explicit DeviceArray(size_t floats) : bytes_(4 * floats) {
    Check(cudaMalloc(&data_, std::max<size_t>(bytes_, 4)));
    Check(cudaMemset(data_, 0xcc, std::max<size_t>(bytes_, 4)));
  }
  explicit DeviceArray(const std::vector<float>& host) : DeviceArray(host.size()) {
    Check(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void To(std::vector<float>& host) const {
    Check(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost));
  }
  float* data() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

// The tensors of a run in device memory.
struct DeviceTensors {
  explicit DeviceTensors(Tensors& tensors)
      : host(tensors),
        points(tensors.points),
        mask(tensors.mask),
        copied(tensors.copied.size()),
        mask_copy(tensors.mask_copy.size()),
        tags(tensors.tags.size()) {}
  std::vector<TensorView> Inputs() const {
    return {View<const float>{points.data(), {host.n, 2, host.p}, Memory::kDevice},
            View<const float>{mask.data(), {host.n, host.p}, Memory::kDevice}};
  }
  std::vector<MutableTensorView> Outputs() const {
    return {View<float>{copied.data(), {host.n, 2, host.p}, Memory::kDevice},
            View<float>{mask_copy.data(), {host.n, host.p}, Memory::kDevice},
            View<float>{tags.data(), {host.n, 4}, Memory::kDevice}};
  }
  // The stream must be idle.
  std::string Mismatch() const {
    copied.To(host.copied);
    mask_copy.To(host.mask_copy);
    tags.To(host.tags);
    return host.Mismatch();
  }

  Tensors& host;
  DeviceArray points, mask, copied, mask_copy, tags;
};

class CudaTest : public testing::Test {
 protected:
  ~CudaTest() override {
    fail = false;
    spoil = 0;
  }

  SessionCore New(const SessionOptions& options = {}, void* stream = nullptr) {
    return SessionCore(Info(), kPrograms, blob_, Device::Cuda(0, stream), options);
  }
  static void ExpectRuns(SessionCore& session, int64_t n, int64_t p, float seed = 5) {
    Tensors tensors(n, p, seed);
    session.Run(tensors.Inputs(), tensors.Outputs());
    EXPECT_EQ(tensors.Mismatch(), "") << "host views, N = " << n << ", P = " << p;
    DeviceTensors on_device(tensors);
    session.Run(on_device.Inputs(), on_device.Outputs());
    session.Synchronize();
    EXPECT_EQ(on_device.Mismatch(), "") << "device views, N = " << n << ", P = " << p;
  }

  std::vector<std::byte> blob_ = test_model::Blob();
};

TEST_F(CudaTest, AnySizesInAnyOrder) {
  SessionCore session = New({.plan_cache_size = 3});
  std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 2},   {7, 33}, {0, 5},    {64, 1000},
                                                    {1, 100}, {3, 2},  {30, 3000}};
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(sizes.begin(), sizes.end(), random);
    for (const auto& [n, p] : sizes) ExpectRuns(session, n, p, static_cast<float>(round));
  }
  EXPECT_EQ(session.memory().plans, 3);
  EXPECT_EQ(session.memory().graphs, 3);
}

TEST_F(CudaTest, RunsAreReplayed) {
  SessionCore session = New();
  enqueued = 0;
  for (int round = 0; round < 10; ++round) ExpectRuns(session, 3, 4, static_cast<float>(round));
  EXPECT_EQ(enqueued, 1);
  // A memset, t0, t1, copied, mask_copy and three rows of tags.
  EXPECT_EQ(session.memory().graph_nodes, 8);
  EXPECT_EQ(session.memory().graph_kernels, 0);
}

TEST_F(CudaTest, OutputsOfTheSession) {
  SessionCore session = New();
  for (const auto& [n, p] : {std::pair<int64_t, int64_t>{3, 4}, {1, 2}, {0, 3}, {9, 20}}) {
    Tensors tensors(n, p, 2);
    const auto check = [&](std::span<const TensorView> outputs, Memory memory) {
      ASSERT_EQ(outputs.size(), 3u);
      const std::pair<size_t, std::vector<float>*> all[] = {
          {0, &tensors.copied}, {1, &tensors.mask_copy}, {2, &tensors.tags}};
      for (const auto& [index, to] : all) {
        EXPECT_EQ(outputs[index].memory, memory);
        ASSERT_EQ(outputs[index].shape.elements(), static_cast<int64_t>(to->size()));
        if (to->empty()) continue;
        Check(cudaMemcpy(to->data(), outputs[index].data, 4 * to->size(), cudaMemcpyDefault));
      }
      EXPECT_EQ(tensors.Mismatch(), "");
    };
    check(session.Run(tensors.Inputs()), Memory::kHost);
    DeviceTensors on_device(tensors);
    const auto outputs = session.Run(on_device.Inputs());
    session.Synchronize();
    check(outputs, Memory::kDevice);
    auto mixed = tensors.Inputs();
    mixed[0] = on_device.Inputs()[0];
    check(session.Run(mixed), Memory::kHost);
  }
}

TEST_F(CudaTest, MixedMemory) {
  SessionCore session = New();
  Tensors tensors(5, 6, 1);
  DeviceTensors on_device(tensors);
  auto inputs = tensors.Inputs();
  auto outputs = on_device.Outputs();
  inputs[1] = on_device.Inputs()[1];
  outputs[0] = tensors.Outputs()[0];
  session.Run(inputs, outputs);
  const std::vector<float> copied = tensors.copied;
  EXPECT_EQ(copied, tensors.points);
  on_device.mask_copy.To(tensors.mask_copy);
  on_device.tags.To(tensors.tags);
  EXPECT_EQ(tensors.Mismatch(), "");
}

TEST_F(CudaTest, StreamOfTheCaller) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    SessionCore session = New({}, stream);
    ExpectRuns(session, 3, 4);
    Tensors tensors(50, 60, 1);
    DeviceTensors on_device(tensors);
    session.Run(on_device.Inputs(), on_device.Outputs());
    Check(cudaStreamSynchronize(stream));  // the stream alone is enough to wait for
    EXPECT_EQ(on_device.Mismatch(), "");
    Tensors more(7, 8, 9);
    DeviceTensors more_on_device(more);
    session.Enqueue(more_on_device.Inputs(), more_on_device.Outputs());
    Check(cudaStreamSynchronize(stream));
    EXPECT_EQ(more_on_device.Mismatch(), "");
    ExpectRuns(session, 7, 8);
    session.SetProfiling(true);
    ExpectRuns(session, 7, 8);
    EXPECT_EQ(session.profile().steps.size(), 5u);
  }
  Check(cudaStreamDestroy(stream));
}

TEST_F(CudaTest, EveryKindOfStream) {
  for (cudaStream_t stream : {cudaStreamLegacy, cudaStreamPerThread}) {
    SessionCore session = New({}, stream);
    ExpectRuns(session, 3, 4);
  }
}

TEST_F(CudaTest, EnqueueIntoACaptureOfTheCaller) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    SessionCore session = New({}, stream);
    Tensors tensors(3, 4, 6);
    DeviceTensors on_device(tensors);
    session.Enqueue(on_device.Inputs(), on_device.Outputs());  // makes the plan
    Check(cudaStreamSynchronize(stream));
    Check(cudaMemset(on_device.copied.data(), 0, 4 * tensors.copied.size()));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    session.Enqueue(on_device.Inputs(), on_device.Outputs());
    Check(cudaStreamEndCapture(stream, &graph));
    Check(cudaGraphInstantiate(&executable, graph, 0));
    Check(cudaGraphLaunch(executable, stream));
    Check(cudaStreamSynchronize(stream));
    EXPECT_EQ(on_device.Mismatch(), "");
    Check(cudaGraphExecDestroy(executable));
    Check(cudaGraphDestroy(graph));
  }
  Check(cudaStreamDestroy(stream));
}

TEST_F(CudaTest, EnqueueTakesDeviceMemory) {
  SessionCore session = New();
  Tensors tensors(3, 4, 1);
  ExpectThrows<ArgumentError>(
      [&] { session.Enqueue(tensors.Inputs(), tensors.Outputs()); },
      "input 'points' is host memory, but Enqueue takes device memory; use Run");
  ExpectRuns(session, 3, 4);
}

TEST_F(CudaTest, RepeatedRunAllocatesNothing) {
  SessionCore session = New();
  Tensors small(2, 3, 1);
  Tensors large(200, 300, 2);
  DeviceTensors small_on_device(small);
  DeviceTensors large_on_device(large);
  const auto small_inputs = small.Inputs();
  const auto large_inputs = large.Inputs();
  const auto large_outputs = large.Outputs();
  const auto device_inputs = small_on_device.Inputs();
  const auto device_outputs = small_on_device.Outputs();
  session.Run(small_inputs);  // its graph survives the growth that follows
  session.Run(large_inputs, large_outputs);
  const int64_t counted = Allocations().allocations;
  const int64_t heap = HeapAllocations();
  size_t free_before = 0;
  size_t free_after = 0;
  size_t total = 0;
  Check(cudaMemGetInfo(&free_before, &total));
  for (int round = 0; round < 20; ++round) {
    session.Run(small_inputs);
    session.Run(large_inputs, large_outputs);
    session.Run(large_inputs);
    session.Run(device_inputs, device_outputs);
    session.Run(device_inputs);
  }
  session.Synchronize();
  EXPECT_EQ(HeapAllocations(), heap);
  EXPECT_EQ(Allocations().allocations, counted);
  Check(cudaMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_after, free_before);
  EXPECT_EQ(large.Mismatch(), "");
  EXPECT_EQ(small_on_device.Mismatch(), "");
}

TEST_F(CudaTest, PreparedRunAllocatesNothing) {
  SessionCore session = New();
  const int64_t sizes[] = {60, 70};
  session.Prepare(sizes);
  Tensors tensors(60, 70, 1);
  const auto inputs = tensors.Inputs();
  const auto outputs = tensors.Outputs();
  const int64_t counted = Allocations().allocations;
  const int64_t heap = HeapAllocations();
  enqueued = 0;
  session.Run(inputs);
  session.Run(inputs, outputs);
  EXPECT_EQ(HeapAllocations(), heap);
  EXPECT_EQ(Allocations().allocations, counted);
  EXPECT_EQ(enqueued, 0);
  EXPECT_EQ(tensors.Mismatch(), "");
}

TEST_F(CudaTest, ReservedArenaNeverGrows) {
  SessionCore session = New({.plan_cache_size = 2});
  const int64_t sizes[] = {12, 400};
  session.Reserve(sizes);
  const size_t arena = session.memory().arena;
  EXPECT_GE(arena, session.memory().workspace);
  for (int64_t n = 0; n <= 12; n += 3) {
    for (int64_t p = 2; p <= 400; p += 37) ExpectRuns(session, n, p);
  }
  EXPECT_EQ(session.memory().arena, arena);
}

TEST_F(CudaTest, FailedLaunchLeavesTheSessionUsable) {
  SessionCore session = New();
  ExpectRuns(session, 2, 3);
  Tensors tensors(3, 4, 1);
  fail = true;
  ExpectThrows<DeviceError>([&] { session.Run(tensors.Inputs()); },
                            "model 'test_model' on cuda:0, step 4 '/tags/Expand' (Expand_3), "
                            "N = 3, P = 4: launch failed");
  fail = false;
  ExpectRuns(session, 3, 4);
  ExpectRuns(session, 2, 3);
}

TEST_F(CudaTest, MemoryLimitAndExhaustion) {
  SessionCore limited = New({.memory_limit = size_t{5} << 20});
  ExpectRuns(limited, 3, 4);
  const int64_t sizes[] = {1000, 1000};
  EXPECT_THROW(limited.Prepare(sizes), MemoryError);
  ExpectRuns(limited, 3, 4);

  SessionCore session = New();
  ExpectRuns(session, 3, 4);
  const int64_t huge[] = {int64_t{1} << 20, int64_t{1} << 22};  // 2^45 bytes of points
  EXPECT_THROW(session.Prepare(huge), MemoryError);
  ExpectRuns(session, 3, 4);
}

TEST_F(CudaTest, WeightsAreSharedAndFreed) {
  const int64_t live = Allocations().live_bytes;
  {
    SessionCore first = New();
    EXPECT_EQ(Allocations().live_bytes, live + 512);
    SessionCore second = New();
    EXPECT_EQ(Allocations().live_bytes, live + 512);
    ExpectRuns(first, 3, 4);
    ExpectRuns(second, 3, 4);
  }
  EXPECT_EQ(Allocations().live_bytes, live);
}

TEST_F(CudaTest, Profile) {
  SessionCore session = New({.profile = true});
  for (int round = 0; round < 3; ++round) ExpectRuns(session, 64, 1000);
  const Profile& profile = session.profile();
  ASSERT_EQ(profile.steps.size(), 5u);
  double sum = 0;
  for (const StepProfile& step : profile.steps) {
    EXPECT_EQ(step.microseconds.count(), 6);
    EXPECT_GT(step.microseconds.mean(), 0);
    sum += step.microseconds.mean();
  }
  EXPECT_GT(profile.run_microseconds.mean(), 0);
  EXPECT_NEAR(sum, profile.run_microseconds.mean(), 0.01 * sum + 10);
}

TEST_F(CudaTest, SessionsRunConcurrently) {
  std::vector<std::thread> threads;
  std::vector<std::string> mismatches(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        SessionCore session(Info(), kPrograms, blob_, Device::Cuda());
        for (int64_t n : {1 + i, 90, 2}) {
          Tensors tensors(n, 30 + i, static_cast<float>(100 * i + round));
          session.Run(tensors.Inputs(), tensors.Outputs());
          if (const std::string mismatch = tensors.Mismatch(); !mismatch.empty()) {
            mismatches[i] = mismatch;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mismatch : mismatches) EXPECT_EQ(mismatch, "");
}

TEST_F(CudaTest, SpoiltCapturesAreTriedAgain) {
  SessionCore session = New();
  enqueued = 0;
  spoil = 2;
  ExpectRuns(session, 3, 4);
  EXPECT_EQ(enqueued, 3);
  Tensors tensors(5, 6, 1);
  spoil = 1000;
  EXPECT_THROW(session.Run(tensors.Inputs(), tensors.Outputs()), DeviceError);
  spoil = 0;
  ExpectRuns(session, 5, 6);
  ExpectRuns(session, 3, 4);
}

TEST_F(CudaTest, DeviceOutOfRange) {
  int count = 0;
  Check(cudaGetDeviceCount(&count));
  ExpectThrows<BackendError>([&] { SessionCore(Info(), kPrograms, blob_, Device::Cuda(count)); },
                             "cuda:" + std::to_string(count) + ": this machine has " +
                                 std::to_string(count) + " CUDA devices; use an index from 0 to " +
                                 std::to_string(count - 1));
}

TEST_F(CudaTest, CurrentDeviceIsKept) {
  int before = -1;
  int after = -1;
  Check(cudaGetDevice(&before));
  {
    SessionCore session = New();
    ExpectRuns(session, 3, 4);
  }
  Check(cudaGetDevice(&after));
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace sofie
