// The runtime on a GPU, with copies as its kernels. Needs an NVIDIA GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sofie/runtime/backend/cuda_copy.h"
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
thread_local bool through_library = false;  // copies are a library's, not kernels
thread_local int enqueued = 0;
thread_local int spoil = 0;  // how many captures to make invalid

void CopyOnDevice(LaunchContext& context, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const auto stream = static_cast<cudaStream_t>(context.queue());
  LaunchObserver* const observer = context.observer();
  const bool launches = observer == nullptr || observer->launches();
  if (through_library) {
    if (observer != nullptr) observer->OnLibraryOperand(from);
    if (observer != nullptr) observer->OnLibraryOperand(to);
    if (launches) Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    return;
  }
  const DeviceCopy copy = {.to = to, .from = from, .bytes = bytes};
  CopyBatch batch = NewCopyBatch(std::span(&copy, 1));
  void* arguments[1];
  const cudaKernelNodeParams kernel = CopyKernel(batch, arguments);
  if (launches) {
    Check(cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, arguments,
                           kernel.sharedMemBytes, stream));
  }
  if (observer == nullptr) return;
  observer->OnKernel({.entry = kernel.func,
                      .blocks = {kernel.gridDim.x, kernel.gridDim.y, kernel.gridDim.z},
                      .threads = kernel.blockDim.x,
                      .shared_bytes = kernel.sharedMemBytes,
                      .argument = std::as_bytes(std::span(&batch, 1))});
}

void EnqueueOnDevice(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                     const std::byte* weights) {
  ++enqueued;
  const bool launches = context.observer() == nullptr || context.observer()->launches();
  if (launches) {
    // The workspace belongs to the steps: overwriting it harms nothing.
    Check(cudaMemsetAsync(context.workspace(), 0xee, context.workspace_bytes(),
                          static_cast<cudaStream_t>(context.queue())));
  }
  test_model::Enqueue(&CopyOnDevice, context, symbols, buffers, weights);
  if (fail) throw std::runtime_error("launch failed");
  if (launches && spoil > 0) {
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
    Poison();
  }
  explicit DeviceArray(const std::vector<float>& host) : DeviceArray(host.size()) {
    Check(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void Poison() const { Check(cudaMemset(data_, 0xcc, std::max<size_t>(bytes_, 4))); }
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
    through_library = false;
    spoil = 0;
  }

  SessionCore New(const SessionOptions& options = {}, void* stream = nullptr) {
    return SessionCore(Info(), kPrograms, weights_, Device::Cuda(0, stream), options);
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

  std::vector<std::byte> weights_ = test_model::WeightsFile();
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
  Tensors tensors(3, 4, 1);
  for (int round = 0; round < 10; ++round) session.Run(tensors.Inputs(), tensors.Outputs());
  EXPECT_EQ(enqueued, 1);
  DeviceTensors on_device(tensors);
  for (int round = 0; round < 10; ++round) session.Run(on_device.Inputs(), on_device.Outputs());
  session.Synchronize();
  EXPECT_EQ(on_device.Mismatch(), "");
  EXPECT_EQ(enqueued, 2);  // once more for addresses that came again
  // All inputs, a memset, t0, t1, copied, mask_copy, three rows of tags, all outputs.
  EXPECT_EQ(session.memory().graph_nodes, 10);
  EXPECT_EQ(session.memory().graph_kernels, 7);
}

// What runs copy of tensors with N = 3 and P = 4: the number that says what was used in place.
TEST_F(CudaTest, DeviceViewsThatComeAgainAreUsedInPlace) {
  constexpr size_t kPoints = 4 * 3 * 2 * 4;
  constexpr size_t kMask = 4 * 3 * 4;
  constexpr size_t kTags = 4 * 3 * 4;
  constexpr size_t kOutputs = kPoints + kMask + kTags;
  for (const bool profile : {false, true}) {
    SessionCore session = New({.profile = profile});
    Tensors tensors(3, 4, 1);
    DeviceTensors first(tensors);
    DeviceTensors second(tensors);
    const auto expect_run = [&](const std::vector<TensorView>& inputs, const DeviceTensors& outputs,
                                size_t copied) {
      for (const DeviceArray* array : {&outputs.copied, &outputs.mask_copy, &outputs.tags}) {
        array->Poison();
      }
      session.Run(inputs, outputs.Outputs());
      session.Synchronize();
      EXPECT_EQ(session.memory().copied, copied);
      EXPECT_EQ(outputs.Mismatch(), "");
    };
    expect_run(first.Inputs(), first, kPoints + kMask + kOutputs);
    expect_run(first.Inputs(), first, 0);
    expect_run(first.Inputs(), first, 0);
    // Other elements at the same addresses.
    for (float& value : tensors.points) value += 1000;
    for (const DeviceTensors* one : {&first, &second}) {
      Check(cudaMemcpy(one->points.data(), tensors.points.data(), kPoints, cudaMemcpyHostToDevice));
    }
    expect_run(first.Inputs(), first, 0);
    // Other addresses.
    expect_run(second.Inputs(), first, kPoints + kMask);
    expect_run(second.Inputs(), first, 0);
    expect_run(first.Inputs(), second, kPoints + kMask + kOutputs);
    expect_run(second.Inputs(), first, kPoints + kMask + kOutputs);
    expect_run(first.Inputs(), second, kPoints + kMask + kOutputs);
    expect_run(first.Inputs(), second, 0);
    // Host memory beside it.
    auto mixed = first.Inputs();
    mixed[0] = tensors.Inputs()[0];
    expect_run(mixed, second, kPoints);
    auto mixed_outputs = second.Outputs();
    mixed_outputs[2] = tensors.Outputs()[2];
    session.Run(first.Inputs(), mixed_outputs);
    EXPECT_EQ(session.memory().copied, kTags);
    // Not aligned as kernels want it.
    DeviceArray odd(tensors.mask.size() + 1);
    Check(cudaMemcpy(odd.data() + 1, tensors.mask.data(), kMask, cudaMemcpyHostToDevice));
    auto unaligned = first.Inputs();
    unaligned[1].data = odd.data() + 1;
    expect_run(unaligned, second, kMask);
    expect_run(unaligned, second, kMask);
    // Outputs that the session owns, then as inputs: steps write there.
    for (int round = 0; round < 3; ++round) {
      const std::span<const TensorView> owned = session.Run(first.Inputs());
      // The output of the points lies where their input goes: it is there already.
      expect_run({owned[0], owned[1]}, second, kMask);
      const TensorView points = session.Run(first.Inputs())[0];
      const TensorView result = session.Run({{points, first.Inputs()[1]}})[0];
      session.Synchronize();
      std::vector<float> copied(tensors.points.size());
      Check(cudaMemcpy(copied.data(), result.data, kPoints, cudaMemcpyDeviceToHost));
      EXPECT_EQ(copied, tensors.points);
    }
  }
}

TEST_F(CudaTest, LargeViewsAreUsedInPlaceAtOnce) {
  SessionCore session = New();
  for (int round = 0; round < 2; ++round) {
    Tensors tensors(3, 1 << 20, static_cast<float>(round));
    const DeviceTensors on_device(tensors);
    session.Run(on_device.Inputs(), on_device.Outputs());
    session.Synchronize();
    EXPECT_EQ(session.memory().copied, 0u);
    EXPECT_EQ(on_device.Mismatch(), "");
  }
}

TEST_F(CudaTest, MemoryIsFreedAndAllocatedAtTheSameAddress) {
  SessionCore session = New();
  const void* before = nullptr;
  int repeated = 0;
  for (int round = 0; round < 5; ++round) {
    Tensors tensors(64, 1000, static_cast<float>(round));
    const DeviceTensors on_device(tensors);
    repeated += on_device.points.data() == before;
    before = on_device.points.data();
    for (int run = 0; run < 2; ++run) {
      session.Run(on_device.Inputs(), on_device.Outputs());
      session.Synchronize();
      EXPECT_EQ(on_device.Mismatch(), "");
    }
    EXPECT_EQ(session.memory().copied, 0u);
  }
  EXPECT_GT(repeated, 0);
}

// A library's kernels keep the addresses that they were captured with.
TEST_F(CudaTest, OperandsOfLibrariesAreCopied) {
  through_library = true;
  SessionCore session = New();
  Tensors tensors(3, 4, 1);
  DeviceTensors first(tensors);
  DeviceTensors second(tensors);
  enqueued = 0;
  for (const DeviceTensors* on_device : {&first, &second}) {
    for (int round = 0; round < 3; ++round) {
      on_device->copied.Poison();
      session.Run(on_device->Inputs(), on_device->Outputs());
      session.Synchronize();
      EXPECT_EQ(on_device->Mismatch(), "");
      EXPECT_EQ(session.memory().copied, 2 * (4 * 24 + 4 * 12) + 4 * 12u);
    }
  }
  EXPECT_EQ(enqueued, 3);  // captured, in place, and back
}

TEST_F(CudaTest, FailedUpdateLeavesTheSessionUsable) {
  SessionCore session = New();
  Tensors tensors(3, 4, 1);
  DeviceTensors first(tensors);
  DeviceTensors second(tensors);
  for (int round = 0; round < 2; ++round) session.Run(first.Inputs(), first.Outputs());
  fail = true;
  EXPECT_THROW(session.Run(second.Inputs(), second.Outputs()), DeviceError);
  EXPECT_THROW(session.Run(second.Inputs(), second.Outputs()), DeviceError);
  fail = false;
  for (const DeviceTensors* on_device : {&second, &first}) {
    for (int round = 0; round < 3; ++round) {
      on_device->copied.Poison();
      session.Run(on_device->Inputs(), on_device->Outputs());
      session.Synchronize();
      EXPECT_EQ(on_device->Mismatch(), "");
    }
  }
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

TEST_F(CudaTest, PointersChangeWhileRunsAreQueued) {
  SessionCore session = New();
  std::vector<Tensors> tensors;
  for (int i = 0; i < 50; ++i) tensors.emplace_back(64, 1000, static_cast<float>(1000 * i));
  std::vector<std::unique_ptr<DeviceTensors>> on_device;
  for (Tensors& one : tensors) on_device.push_back(std::make_unique<DeviceTensors>(one));
  Check(cudaDeviceSynchronize());
  for (const auto& one : on_device) {
    session.Run(one->Inputs());
    session.Run(one->Inputs(), one->Outputs());
  }
  session.Synchronize();
  for (const auto& one : on_device) EXPECT_EQ(one->Mismatch(), "");
}

TEST_F(CudaTest, MemoryOfEveryKind) {
  SessionCore session = New();
  for (const bool managed : {false, true}) {
    Tensors tensors(5, 6, managed ? 2.0f : 1.0f);
    float* memory = nullptr;
    const size_t points = tensors.points.size();
    const size_t bytes = 8 * points;
    if (managed) {
      Check(cudaMallocManaged(&memory, bytes));
    } else {
      Check(cudaMallocHost(&memory, bytes));  // copied beside the graph
    }
    std::copy(tensors.points.begin(), tensors.points.end(), memory);
    DeviceTensors on_device(tensors);
    auto inputs = on_device.Inputs();
    auto outputs = on_device.Outputs();
    inputs[0].data = memory;
    outputs[0].data = memory + points;
    for (int round = 0; round < 2; ++round) {
      std::fill_n(memory + points, points, -1.0f);
      session.Run(inputs, outputs);
      session.Synchronize();
      EXPECT_EQ(std::vector<float>(memory + points, memory + 2 * points), tensors.points);
    }
    Check(managed ? cudaFree(memory) : cudaFreeHost(memory));
  }
}

// Each of its many inputs comes out again: input i, [N, i], is of bytes if i is even, else of
// floats.
struct ManyTensors {
  static constexpr int kCount = 40;  // more than one kernel copies
  static DType TypeOf(int i) { return i % 2 == 0 ? DType::kUInt8 : DType::kFloat32; }
  static size_t BytesOf(int64_t n, int i) { return static_cast<size_t>(n) * i * SizeOf(TypeOf(i)); }

  ManyTensors() {
    dims.reserve(kCount);
    for (int i = 0; i < kCount; ++i) dims.push_back({DimInfo{.symbol = 0}, DimInfo{.value = i}});
    for (int i = 0; i < kCount; ++i) tensors.push_back({"tensor", TypeOf(i), dims[i]});
    for (int i = 0; i < 2 * kCount; ++i) {
      buffers.push_back({"buffer", static_cast<int32_t>(SizeOf(TypeOf(i % kCount))), 0, 0});
    }
  }
  // Points to this object.
  ModelInfo NewInfo() const {
    return {.name = "many",
            .cpp_namespace = "many",
            .generator_version = "test",
            .symbols = symbols,
            .inputs = tensors,
            .outputs = tensors,
            .buffers = buffers,
            .steps = steps,
            .graph_hash = Info().graph_hash,
            .weights_bytes = Info().weights_bytes,
            .buffer_bytes = &BufferBytes,
            .output_shapes = &OutputShapes};
  }
  static void BufferBytes(const int64_t* symbols, int64_t* bytes) {
    for (int i = 0; i < 2 * kCount; ++i) {
      bytes[i] = static_cast<int64_t>(BytesOf(symbols[0], i % kCount));
    }
  }
  static void OutputShapes(const int64_t* symbols, Shape* shapes) {
    for (int i = 0; i < kCount; ++i) shapes[i] = {symbols[0], i};
  }
  static void Enqueue(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                      const std::byte*) {
    context.Step(0);
    for (int i = 0; i < kCount; ++i) {
      CopyOnDevice(context, buffers[kCount + i], buffers[i], BytesOf(symbols[0], i));
    }
  }

  const char* symbols[1] = {"N"};
  StepInfo steps[1] = {{"/Identity", "Copy_0"}};
  std::vector<std::array<DimInfo, 2>> dims;
  std::vector<TensorInfo> tensors;
  std::vector<BufferInfo> buffers;
};

TEST_F(CudaTest, ManyTensorsOfAnyAlignmentAndMemory) {
  constexpr int kCount = ManyTensors::kCount;
  constexpr size_t kGuard = 64;  // bytes before and after each tensor
  const ManyTensors many;
  const ModelInfo info = many.NewInfo();
  constexpr BackendProgram kProgram[] = {{Backend::kCuda, &ManyTensors::Enqueue, &kCudaBackend}};
  SessionCore session(info, kProgram, weights_, Device::Cuda());
  std::mt19937 random(7);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  int round = 0;
  // The arena moves as sizes grow, with graphs captured before.
  for (const int64_t n : {3, 1, 0, 3, 100, 3, 30000, 100, 1, 3}) {
    // The first round is of device memory, aligned like floats; the second of any memory.
    for (int mixed = 0; mixed < 2; ++mixed) {
      SCOPED_TRACE("N = " + std::to_string(n) + ", round " + std::to_string(round++));
      session.SetProfiling(round % 4 == 0);
      std::vector<size_t> at(kCount);
      size_t bytes = 0;
      for (int i = 0; i < kCount; ++i) {
        const size_t element = SizeOf(ManyTensors::TypeOf(i));
        at[i] = (bytes + kGuard + 15) / 16 * 16 + element * below(16);
        bytes = at[i] + ManyTensors::BytesOf(n, i) + kGuard;
      }
      std::vector<std::byte> values(bytes);
      for (std::byte& value : values) value = static_cast<std::byte>(random());
      std::vector<std::byte> host(bytes, std::byte{0xcc});  // host outputs
      DeviceArray from(bytes / 4 + 1);
      DeviceArray to(bytes / 4 + 1);
      Check(cudaMemcpy(from.data(), values.data(), bytes, cudaMemcpyHostToDevice));
      Check(cudaDeviceSynchronize());
      const auto in = [](const DeviceArray& array, size_t offset) {
        return reinterpret_cast<std::byte*>(array.data()) + offset;
      };
      std::vector<TensorView> inputs;
      std::vector<MutableTensorView> outputs;
      std::vector<bool> on_host(kCount);
      for (int i = 0; i < kCount; ++i) {
        const Shape shape = {n, i};
        const DType type = ManyTensors::TypeOf(i);
        if (mixed == 1 && below(2) == 0) {
          inputs.emplace_back(values.data() + at[i], type, shape, Memory::kHost);
        } else {
          inputs.emplace_back(in(from, at[i]), type, shape, Memory::kDevice);
        }
        on_host[i] = mixed == 1 && below(2) == 0;
        if (on_host[i]) {
          outputs.emplace_back(host.data() + at[i], type, shape, Memory::kHost);
        } else {
          outputs.emplace_back(in(to, at[i]), type, shape, Memory::kDevice);
        }
      }
      std::vector<std::byte> expected(bytes, std::byte{0xcc});
      std::vector<std::byte> expected_host = expected;
      for (int i = 0; i < kCount; ++i) {
        std::vector<std::byte>& all = on_host[i] ? expected_host : expected;
        std::copy_n(values.begin() + at[i], ManyTensors::BytesOf(n, i), all.begin() + at[i]);
      }
      session.Run(inputs, outputs);
      session.Synchronize();
      std::vector<std::byte> result(bytes);
      Check(cudaMemcpy(result.data(), to.data(), bytes, cudaMemcpyDeviceToHost));
      EXPECT_TRUE(result == expected);
      EXPECT_TRUE(host == expected_host);

      const std::span<const TensorView> own = session.Run(inputs);
      session.Synchronize();
      for (int i = 0; i < kCount; ++i) {
        const size_t size = ManyTensors::BytesOf(n, i);
        if (size == 0) continue;
        std::vector<std::byte> one(size);
        Check(cudaMemcpy(one.data(), own[i].data, size, cudaMemcpyDefault));
        EXPECT_TRUE(std::equal(one.begin(), one.end(), values.begin() + at[i])) << i;
      }
    }
  }
  // Three kernels for 40 copies, on either side.
  const int64_t copies = 39;  // input 0 has no bytes
  EXPECT_EQ(session.memory().graph_nodes, copies + 6);
  EXPECT_EQ(session.memory().graph_kernels, copies);
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
  DeviceTensors other_on_device(small);
  const auto other_inputs = other_on_device.Inputs();
  const auto other_outputs = other_on_device.Outputs();
  auto mixed_inputs = other_inputs;
  mixed_inputs[0] = small_inputs[0];
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
    session.Run(other_inputs, device_outputs);
    session.Run(other_inputs, other_outputs);
    session.Run(mixed_inputs, other_outputs);
    session.Run(mixed_inputs);
  }
  session.Synchronize();
  EXPECT_EQ(HeapAllocations(), heap);
  EXPECT_EQ(Allocations().allocations, counted);
  Check(cudaMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_after, free_before);
  EXPECT_EQ(large.Mismatch(), "");
  EXPECT_EQ(small_on_device.Mismatch(), "");
  EXPECT_EQ(other_on_device.Mismatch(), "");
}

TEST_F(CudaTest, PreparedRunAllocatesNothing) {
  SessionCore session = New();
  const int64_t sizes[] = {60, 70};
  session.Prepare(sizes);
  Tensors tensors(60, 70, 1);
  const auto inputs = tensors.Inputs();
  const auto outputs = tensors.Outputs();
  DeviceTensors on_device(tensors);
  const auto device_inputs = on_device.Inputs();
  const auto device_outputs = on_device.Outputs();
  const int64_t counted = Allocations().allocations;
  const int64_t heap = HeapAllocations();
  enqueued = 0;
  session.Run(device_inputs, device_outputs);
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
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<std::string> mismatches(kThreads);
  // Made before and freed after: that may wait for the device, which others' captures don't allow.
  std::vector<Tensors> tensors;
  std::vector<std::unique_ptr<DeviceTensors>> on_device;
  tensors.reserve(2 * kThreads);
  for (int i = 0; i < 2 * kThreads; ++i) {
    tensors.emplace_back(90, 30 + i / 2, static_cast<float>(10000 * i));
    on_device.push_back(std::make_unique<DeviceTensors>(tensors.back()));
  }
  Check(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        SessionCore session(Info(), kPrograms, weights_, Device::Cuda());
        for (int64_t n : {1 + i, 90, 2}) {
          Tensors on_host(n, 30 + i, static_cast<float>(100 * i + round));
          session.Run(on_host.Inputs(), on_host.Outputs());
          if (const std::string mismatch = on_host.Mismatch(); !mismatch.empty()) {
            mismatches[i] = mismatch;
          }
        }
        for (int run = 0; run < 20; ++run) {
          const DeviceTensors& one = *on_device[2 * i + run % 2];
          session.Run(one.Inputs(), one.Outputs());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mismatch : mismatches) EXPECT_EQ(mismatch, "");
  for (const auto& one : on_device) EXPECT_EQ(one->Mismatch(), "");
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
  ExpectThrows<BackendError>([&] { SessionCore(Info(), kPrograms, weights_, Device::Cuda(count)); },
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
