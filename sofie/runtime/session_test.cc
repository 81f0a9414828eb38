#include "sofie/runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sofie/runtime/heap_counter.h"
#include "sofie/runtime/test_model.h"
#include "sofie/runtime/testing.h"

namespace sofie {
namespace {

using test_model::Info;
using test_model::Tensors;

// What the enqueue function of the session at hand does in step 2 on this thread.
enum class Fault { kNone, kException, kMemory, kHeap };
thread_local Fault fault = Fault::kNone;
thread_local bool last_wide = false;
thread_local int last_threads = 0;

void EnqueueWithFaults(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                       const std::byte* weights) {
  last_wide = context.wide();
  last_threads = context.threads();
  if (fault != Fault::kNone) {
    context.Step(2);
    if (fault == Fault::kException) throw std::runtime_error("launch failed");
    if (fault == Fault::kMemory) throw MemoryError("no workspace");
    throw std::bad_alloc();
  }
  test_model::EnqueueOnHost(context, symbols, buffers, weights);
}

constexpr BackendProgram kPrograms[] = {{Backend::kCpu, &EnqueueWithFaults, &kCpuBackend},
                                        {Backend::kOpenMp, &EnqueueWithFaults, &kOpenMpBackend}};

class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override { fault = Fault::kNone; }

  SessionCore New(const SessionOptions& options = {}, const Device& device = Device::Cpu()) {
    return SessionCore(Info(), kPrograms, weights_, device, options);
  }
  static void ExpectRuns(SessionCore& session, int64_t n, int64_t p, float seed = 5) {
    Tensors tensors(n, p, seed);
    session.Run(tensors.Inputs(), tensors.Outputs());
    EXPECT_EQ(tensors.Mismatch(), "") << "at N = " << n << ", P = " << p;
  }

  std::vector<std::byte> weights_ = test_model::WeightsFile();
};

TEST_F(SessionTest, AnySizesInAnyOrder) {
  SessionCore session = New({.plan_cache_size = 3});
  std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 2}, {7, 33}, {0, 5}, {64, 100}, {1, 100},
                                                    {3, 2}, {1, 3},  {2, 2}, {5, 64}};
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(sizes.begin(), sizes.end(), random);
    for (const auto& [n, p] : sizes) ExpectRuns(session, n, p, static_cast<float>(round));
  }
  EXPECT_EQ(session.memory().plans, 3);
}

TEST_F(SessionTest, OutputsOfTheSession) {
  SessionCore session = New();
  for (const auto& [n, p] : {std::pair<int64_t, int64_t>{3, 4}, {1, 2}, {0, 3}, {9, 20}}) {
    Tensors tensors(n, p, 2);
    const std::span<const TensorView> outputs = session.Run(tensors.Inputs());
    ASSERT_EQ(outputs.size(), 3u);
    EXPECT_EQ(outputs[0].shape, Shape({n, 2, p}));
    EXPECT_EQ(outputs[1].shape, Shape({n, p}));
    EXPECT_EQ(outputs[2].shape, Shape({n, 4}));
    const auto take = [](const TensorView& view, std::vector<float>& to) {
      EXPECT_EQ(view.dtype, DType::kFloat32);
      EXPECT_EQ(view.memory, Memory::kHost);
      const auto* data = static_cast<const float*>(view.data);
      to.assign(data, data + view.shape.elements());
    };
    take(outputs[0], tensors.copied);
    take(outputs[1], tensors.mask_copy);
    take(outputs[2], tensors.tags);
    EXPECT_EQ(tensors.Mismatch(), "");
  }
}

TEST_F(SessionTest, Enqueue) {
  SessionCore session = New();
  Tensors tensors(3, 4, 2);
  auto inputs = tensors.Inputs();
  auto outputs = tensors.Outputs();
  // On a CPU backend the device's memory is the host's.
  inputs[0].memory = Memory::kDevice;
  outputs[1].memory = Memory::kDevice;
  session.Enqueue(inputs, outputs);
  EXPECT_EQ(tensors.Mismatch(), "");
}

TEST_F(SessionTest, OpenMpThreads) {
  SessionCore session = New({}, Device::OpenMp(3));
  ExpectRuns(session, 2, 5);
  EXPECT_EQ(last_threads, 3);
  SessionCore serial = New();
  ExpectRuns(serial, 2, 5);
  EXPECT_EQ(last_threads, 1);
}

TEST_F(SessionTest, MissingBackend) {
  ExpectThrows<BackendError>(
      [&] { New({}, Device::Cuda()); },
      "this build of model 'test_model' has no cuda backend, only cpu,openmp; build it with "
      "--//sofie:backends=cpu,openmp,cuda (from another workspace: --@sofie//sofie:backends=…)");
}

TEST_F(SessionTest, OptionsOutOfRange) {
  ExpectThrows<ArgumentError>([&] { New({.plan_cache_size = 0}); },
                              "SessionOptions::plan_cache_size = 0; it must be at least 1");
}

// Every bad argument gives its own message, and the session runs after each.
class SessionErrorTest : public SessionTest {
 protected:
  template <class E>
  void ExpectRefused(const std::vector<TensorView>& inputs, const std::string& message) {
    Tensors space(3, 4, 0);
    ExpectThrows<E>([&] { session_.Run(inputs, space.Outputs()); }, message);
    ExpectThrows<E>([&] { session_.Run(inputs); }, message);
    ExpectRuns(session_, 3, 4);
  }
  template <class E>
  void ExpectRefused(const std::vector<MutableTensorView>& outputs, const std::string& message) {
    ExpectThrows<E>([&] { session_.Run(tensors_.Inputs(), outputs); }, message);
    ExpectRuns(session_, 3, 4);
  }

  SessionCore session_{Info(), kPrograms, weights_, Device::Cpu()};
  Tensors tensors_{3, 4, 1};
  std::vector<TensorView> inputs_ = tensors_.Inputs();
  std::vector<MutableTensorView> outputs_ = tensors_.Outputs();
};

TEST_F(SessionErrorTest, ContradictingSizes) {
  inputs_[1].shape = {3, 5};
  ExpectRefused<ShapeError>(inputs_,
                            "input 'mask', axis 1: extent 5 contradicts P = 4 of input 'points', "
                            "axis 2; both must be equal");
  inputs_[1].shape = {2, 4};
  ExpectRefused<ShapeError>(inputs_,
                            "input 'mask', axis 0: extent 2 contradicts N = 3 of input 'points', "
                            "axis 0; both must be equal");
}

TEST_F(SessionErrorTest, Rank) {
  inputs_[1].shape = {3, 4, 1};
  ExpectRefused<ShapeError>(
      inputs_, "input 'mask': shape [3, 4, 1] has rank 3, but the model has [N, P] of rank 2");
}

TEST_F(SessionErrorTest, FixedExtent) {
  inputs_[0].shape = {3, 3, 4};
  ExpectRefused<ShapeError>(
      inputs_, "input 'points', axis 1: extent 3, but the model fixes it at 2 ([N, 2, P])");
}

TEST_F(SessionErrorTest, NegativeExtent) {
  inputs_[0].shape = {-1, 2, 4};
  ExpectRefused<ShapeError>(inputs_,
                            "input 'points', axis 0: extent -1 is negative; extents start at 0");
}

TEST_F(SessionErrorTest, ShapeProgram) {
  inputs_[0].shape = {3, 2, 1};
  inputs_[1].shape = {3, 1};
  ExpectRefused<ShapeError>(inputs_, "node '/knn/TopK': k = 2 is larger than P = 1");
}

TEST_F(SessionErrorTest, InputDType) {
  inputs_[1].dtype = DType::kFloat64;
  ExpectRefused<DTypeError>(
      inputs_, "input 'mask': float64 given, but the model has float32; convert the data");
}

TEST_F(SessionErrorTest, InputNull) {
  inputs_[0].data = nullptr;
  ExpectRefused<ArgumentError>(inputs_,
                               "input 'points': data is null, but shape [3, 2, 4] has 24 elements");
}

TEST_F(SessionErrorTest, InputCount) {
  inputs_.pop_back();
  ExpectRefused<ArgumentError>(inputs_, "model 'test_model' has 2 inputs, but 1 were given");
}

TEST_F(SessionErrorTest, InputInDeviceMemory) {
  inputs_[1].memory = Memory::kDevice;
  ExpectRefused<ArgumentError>(inputs_,
                               "input 'mask' is device memory, but model 'test_model' on cpu reads "
                               "host memory; copy it to the host first");
}

TEST_F(SessionErrorTest, SizesBeyondAnyMemory) {
  inputs_[0].shape = {0, 2, 4};
  inputs_[1].shape = {0, 4};
  EXPECT_NO_THROW(session_.Run(inputs_));
  const int64_t sizes[] = {int64_t{1} << 36, 1000};
  ExpectThrows<MemoryError>([&] { session_.Reserve(sizes); },
                            "model 'test_model' on cpu: 'points' for N = 68719476736, P = 1000 is "
                            "larger than any memory; use smaller sizes");
  const int64_t overflow[] = {int64_t{1} << 58, 0};
  ExpectThrows<MemoryError>([&] { session_.Reserve(overflow); },
                            "model 'test_model' on cpu: 'N' for N = 288230376151711744, P = 0 is "
                            "larger than any memory; use smaller sizes");
  ExpectRuns(session_, 3, 4);
}

TEST_F(SessionErrorTest, HostMemoryExhausted) {
  const int64_t sizes[] = {int64_t{1} << 20, int64_t{1} << 23};  // 2^46 bytes of points
  EXPECT_THROW(session_.Reserve(sizes), MemoryError);
  ExpectRuns(session_, 3, 4);
}

TEST_F(SessionErrorTest, OutputShape) {
  outputs_[2].shape = {3, 5};
  ExpectRefused<ShapeError>(
      outputs_, "output 'tags': the buffer has shape [3, 5], but these inputs give [3, 4]");
}

TEST_F(SessionErrorTest, OutputDType) {
  outputs_[0].dtype = DType::kInt32;
  ExpectRefused<DTypeError>(
      outputs_, "output 'copied': int32 given, but the model has float32; convert the data");
}

TEST_F(SessionErrorTest, OutputNull) {
  outputs_[0].data = nullptr;
  ExpectRefused<ArgumentError>(
      outputs_, "output 'copied': data is null, but shape [3, 2, 4] has 24 elements");
}

TEST_F(SessionErrorTest, OutputCount) {
  outputs_.push_back(outputs_[0]);
  ExpectRefused<ArgumentError>(outputs_, "model 'test_model' has 3 outputs, but 4 were given");
}

TEST_F(SessionErrorTest, OutputInDeviceMemory) {
  outputs_[1].memory = Memory::kDevice;
  ExpectRefused<ArgumentError>(
      outputs_,
      "output 'mask_copy' is device memory, but model 'test_model' on cpu writes host memory");
}

TEST_F(SessionErrorTest, OutputsOverlap) {
  outputs_[1].data = static_cast<float*>(outputs_[0].data) + 11;
  ExpectRefused<ArgumentError>(
      outputs_, "output 'mask_copy' overlaps output 'copied' in memory; give separate buffers");
  outputs_ = tensors_.Outputs();
  outputs_[2].data = tensors_.mask.data();
  ExpectRefused<ArgumentError>(
      outputs_, "output 'tags' overlaps input 'mask' in memory; give separate buffers");
}

TEST_F(SessionErrorTest, SizesForReserveAndPrepare) {
  const int64_t one[] = {1};
  const std::string count = "model 'test_model' has 2 symbolic sizes, but 1 were given";
  ExpectThrows<ArgumentError>([&] { session_.Reserve(one); }, count);
  ExpectThrows<ArgumentError>([&] { session_.Prepare(one); }, count);
  const int64_t negative[] = {1, -3};
  ExpectThrows<ShapeError>([&] { session_.Prepare(negative); },
                           "size P = -3 is negative; sizes start at 0");
  const int64_t illegal[] = {1, 1};
  EXPECT_THROW(session_.Prepare(illegal), ShapeError);
  ExpectRuns(session_, 3, 4);
}

TEST_F(SessionErrorTest, FailedLaunchNamesTheStep) {
  const std::string where =
      "model 'test_model' on cpu, step 2 '/third/Identity' (Copy_1), N = 3, P = 4: ";
  fault = Fault::kException;
  ExpectThrows<DeviceError>([&] { session_.Run(inputs_); }, where + "launch failed");
  fault = Fault::kMemory;
  ExpectThrows<MemoryError>([&] { session_.Run(inputs_); }, where + "no workspace");
  fault = Fault::kHeap;
  ExpectThrows<MemoryError>([&] { session_.Run(inputs_); }, where + "no host memory");
  fault = Fault::kNone;
  ExpectRuns(session_, 3, 4);
}

TEST_F(SessionErrorTest, FailedLaunchWhileProfiling) {
  session_.SetProfiling(true);
  fault = Fault::kException;
  EXPECT_THROW(session_.Run(inputs_), DeviceError);
  fault = Fault::kNone;
  ExpectRuns(session_, 3, 4);
  EXPECT_EQ(session_.profile().run_microseconds.count(), 1);
}

TEST_F(SessionTest, WeightsFaults) {
  weights_[16] ^= std::byte{1};
  EXPECT_THROW(New(), WeightsError);
  EXPECT_THROW(New({.weights_file = "/no/such/file"}), WeightsError);
}

TEST_F(SessionTest, WeightsFromAFile) {
  const std::string path = testing::TempDir() + "/session.safetensors";
  const std::vector<std::byte> weights = test_model::WeightsFile(100);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size()));
  SessionCore session = New({.weights_file = path});
  Tensors tensors(2, 3, 1);
  session.Run(tensors.Inputs(), tensors.Outputs());
  EXPECT_EQ(tensors.Mismatch(100), "");
  EXPECT_EQ(session.memory().weights_allocated, test_model::kWeightsBytes);
}

TEST_F(SessionTest, RepeatedRunAllocatesNothing) {
  SessionCore session = New();
  Tensors small(2, 3, 1);
  Tensors large(20, 30, 2);
  const auto small_inputs = small.Inputs();
  const auto large_inputs = large.Inputs();
  const auto small_outputs = small.Outputs();
  const auto large_outputs = large.Outputs();
  session.Run(small_inputs, small_outputs);
  session.Run(large_inputs);
  const int64_t heap = HeapAllocations();
  const int64_t device = Allocations().allocations;
  for (int round = 0; round < 3; ++round) {
    session.Run(small_inputs, small_outputs);
    session.Run(large_inputs, large_outputs);
    session.Run(small_inputs);
    session.Run(large_inputs);
    session.Enqueue(large_inputs, large_outputs);
  }
  EXPECT_EQ(HeapAllocations(), heap);
  EXPECT_EQ(Allocations().allocations, device);
  EXPECT_EQ(large.Mismatch(), "");
}

TEST_F(SessionTest, PreparedRunAllocatesNothing) {
  SessionCore session = New();
  const int64_t sizes[] = {6, 7};
  session.Prepare(sizes);
  Tensors tensors(6, 7, 1);
  const auto inputs = tensors.Inputs();
  const auto outputs = tensors.Outputs();
  const int64_t heap = HeapAllocations();
  const int64_t device = Allocations().allocations;
  session.Run(inputs, outputs);
  session.Run(inputs);
  EXPECT_EQ(HeapAllocations(), heap);
  EXPECT_EQ(Allocations().allocations, device);
  EXPECT_EQ(tensors.Mismatch(), "");
}

TEST_F(SessionTest, ProfiledRunsAllocateNothingEither) {
  SessionCore session = New({.profile = true});
  Tensors tensors(6, 7, 1);
  const auto inputs = tensors.Inputs();
  const auto outputs = tensors.Outputs();
  session.Run(inputs, outputs);
  const int64_t heap = HeapAllocations();
  session.Run(inputs, outputs);
  EXPECT_EQ(HeapAllocations(), heap);
}

TEST_F(SessionTest, ReservedArenaNeverGrows) {
  SessionCore session = New({.plan_cache_size = 2});
  const int64_t sizes[] = {12, 40};
  session.Reserve(sizes);
  const size_t arena = session.memory().arena;
  EXPECT_GT(arena, 0u);
  const int64_t device = Allocations().allocations;
  for (int64_t n = 0; n <= 12; ++n) {
    for (int64_t p = 2; p <= 40; ++p) ExpectRuns(session, n, p);
  }
  EXPECT_EQ(Allocations().allocations, device);
  EXPECT_EQ(session.memory().arena, arena);
  ExpectRuns(session, 13, 40);
  EXPECT_GT(session.memory().arena, arena);
}

TEST_F(SessionTest, MemoryLimit) {
  // At N = 300, P = 4 steps 1 and 2 each have two buffers of 9600 bytes alive, which take 9728
  // each.
  SessionCore session = New({.memory_limit = kHostWorkspaceBytesPerThread + 2048});
  ExpectRuns(session, 3, 4);
  Tensors tensors(300, 4, 1);
  ExpectThrows<MemoryError>(
      [&] { session.Run(tensors.Inputs(), tensors.Outputs()); },
      "model 'test_model' on cpu: the arena for N = 300, P = 4 wants 543744 bytes, but "
      "SessionOptions::memory_limit is 526336; raise it or use smaller sizes");
  const int64_t sizes[] = {300, 4};
  EXPECT_THROW(session.Reserve(sizes), MemoryError);
  EXPECT_THROW(session.Prepare(sizes), MemoryError);
  ExpectRuns(session, 3, 4);
  EXPECT_EQ(session.memory().limit, kHostWorkspaceBytesPerThread + 2048);
}

// The model with rows that are known not to meet, or where they do.
ModelInfo WithBatch(int32_t symbol, const char* refusal) {
  ModelInfo info = Info();
  info.batch_symbol = symbol;
  info.batch_refusal = refusal;
  return info;
}

// N = 300, P = 4 wants 19456 bytes beside the workspace; 100 rows take 2 * 3328.
constexpr size_t kLimit = kHostWorkspaceBytesPerThread + 7000;

TEST_F(SessionTest, LargeBatchesRunInSlices) {
  const ModelInfo info = WithBatch(0, "");
  SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
  for (const int64_t n : {300, 3, 1000, 300, 301, 1, 0, 109}) {
    ExpectRuns(session, n, 4, static_cast<float>(n));
    EXPECT_LE(session.memory().arena, kLimit);
  }
  ExpectRuns(session, 300, 4);
  EXPECT_EQ(session.memory().slice_rows, 100);  // three slices: 300 rows take as many
  Tensors tensors(301, 4, 1);
  const std::span<const TensorView> owned = session.Run(tensors.Inputs());
  std::vector<MutableTensorView> outputs = tensors.Outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(owned[i].shape, outputs[i].shape);
    std::memcpy(outputs[i].data, owned[i].data, BytesOf(owned[i].dtype, owned[i].shape.elements()));
  }
  EXPECT_EQ(tensors.Mismatch(), "");
  EXPECT_GT(session.memory().sliced_outputs, 0u);
  Tensors queued(302, 4, 2);
  session.Enqueue(queued.Inputs(), queued.Outputs());
  EXPECT_EQ(queued.Mismatch(), "");
}

TEST_F(SessionTest, RepeatedSlicesAllocateNothingOnTheDevice) {
  const ModelInfo info = WithBatch(0, "");
  for (const bool prepare : {true, false}) {
    SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
    Tensors tensors(301, 4, 1);
    if (prepare) {
      const int64_t sizes[] = {301, 4};
      session.Prepare(sizes);
    } else {
      session.Run(tensors.Inputs(), tensors.Outputs());
      session.Run(tensors.Inputs());
    }
    const int64_t before = Allocations().allocations;
    session.Run(tensors.Inputs(), tensors.Outputs());
    session.Run(tensors.Inputs());
    EXPECT_EQ(Allocations().allocations, before);
    EXPECT_EQ(tensors.Mismatch(), "");
  }
}

TEST_F(SessionTest, ReservedSlices) {
  const ModelInfo info = WithBatch(0, "");
  SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
  const int64_t sizes[] = {100000, 4};
  session.Reserve(sizes);
  const size_t arena = session.memory().arena;
  EXPECT_GT(arena, kLimit - 1000);
  EXPECT_LE(arena, kLimit);
  ExpectRuns(session, 100000, 4);
  EXPECT_EQ(session.memory().arena, arena);
}

TEST_F(SessionTest, WholeOutputsOfSlicesAreChecked) {
  const ModelInfo info = WithBatch(0, "");
  SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
  Tensors tensors(300, 4, 1);
  std::vector<MutableTensorView> outputs = tensors.Outputs();
  outputs[2].shape[0] = 299;
  ExpectThrows<ShapeError>([&] { session.Run(tensors.Inputs(), outputs); },
                           "output 'tags': the buffer has shape [299, 4], but these inputs give "
                           "[300, 4]");
  ExpectRuns(session, 300, 4);
}

TEST_F(SessionTest, NotEvenOneRowFits) {
  const ModelInfo info = WithBatch(0, "");
  SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
  Tensors tensors(3, 2000, 1);
  ExpectThrows<MemoryError>(
      [&] { session.Run(tensors.Inputs(), tensors.Outputs()); },
      "model 'test_model' on cpu: the arena for N = 1, P = 2000 wants 556544 bytes, but "
      "SessionOptions::memory_limit is 531288; raise it: a batch runs in slices of at least one "
      "row");
  ExpectRuns(session, 300, 4);
}

TEST_F(SessionTest, RowsThatMeetAreNotCut) {
  const ModelInfo info = WithBatch(-1, "node 'mean' (ReduceMean) reduces over rows");
  SessionCore session(info, kPrograms, weights_, Device::Cpu(), {.memory_limit = kLimit});
  Tensors tensors(300, 4, 1);
  ExpectThrows<MemoryError>(
      [&] { session.Run(tensors.Inputs(), tensors.Outputs()); },
      "model 'test_model' on cpu: the arena for N = 300, P = 4 wants 543744 bytes, but "
      "SessionOptions::memory_limit is 531288; raise it or use smaller sizes; a batch can't run in "
      "slices: node 'mean' (ReduceMean) "
      "reduces over rows");
}

// Every allocation of each call fails once, until the call needs no more.
TEST_F(SessionTest, NoHostMemory) {
  SessionCore session = New();
  ExpectRuns(session, 3, 4);
  Tensors tensors(20, 30, 1);
  const auto inputs = tensors.Inputs();
  const auto outputs = tensors.Outputs();
  const int64_t sizes[] = {40, 50};
  const auto expect_errors = [&](const char* what, const auto& call) {
    int failures = 0;
    for (bool failed = true; failed; failures += failed) {
      FailAllocationAfter(failures);
      try {
        call();
        failed = false;
      } catch (const MemoryError& error) {
        FailAllocationAfter(-1);
        EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos) << what;
      }
      FailAllocationAfter(-1);
      ExpectRuns(session, 3, 4);
    }
    EXPECT_GT(failures, 0) << what;
  };
  expect_errors("Run", [&] { session.Run(inputs, outputs); });
  EXPECT_EQ(tensors.Mismatch(), "");
  expect_errors("Prepare", [&] { session.Prepare(sizes); });
  const int64_t more[] = {60, 70};
  expect_errors("Reserve", [&] { session.Reserve(more); });
  Tensors last(30, 20, 1);
  const auto last_inputs = last.Inputs();
  const auto last_outputs = last.Outputs();
  expect_errors("Enqueue", [&] { session.Enqueue(last_inputs, last_outputs); });
  EXPECT_EQ(last.Mismatch(), "");
}

TEST_F(SessionTest, ArenaFreedWithTheSession) {
  const int64_t before = Allocations().live_bytes;
  {
    SessionCore session = New();
    ExpectRuns(session, 30, 40);
    EXPECT_EQ(Allocations().live_bytes - before,
              static_cast<int64_t>(session.memory().arena + session.memory().weights_allocated));
  }
  EXPECT_EQ(Allocations().live_bytes, before);
}

TEST_F(SessionTest, MemoryReport) {
  SessionCore session = New();
  ExpectRuns(session, 64, 100);
  const MemoryReport report = session.memory();
  EXPECT_EQ(report.weights, test_model::kWeightsBytes);
  EXPECT_EQ(report.weights_allocated, 0u);
  EXPECT_EQ(report.workspace, kHostWorkspaceBytesPerThread);
  EXPECT_EQ(report.arena, report.workspace + report.plan_packed);
  // copied, mask_copy, tags, t0, t1
  EXPECT_EQ(report.plan_unpacked, 51200u + 25600 + 1024 + 51200 + 51200);
  // Steps 1 and 2 have two of the large ones alive; the others fit where t0 and t1 lay.
  EXPECT_EQ(report.plan_packed, 51200u + 51200);
  std::ostringstream text;
  session.PrintMemory(text);
  EXPECT_NE(text.str().find("Memory of model 'test_model' on cpu"), std::string::npos);
  EXPECT_NE(text.str().find("Plan for N = 64, P = 100: " + std::to_string(report.plan_packed) +
                            " bytes in the arena, 180224 without sharing"),
            std::string::npos)
      << text.str();
  EXPECT_NE(text.str().find("mask_copy"), std::string::npos);
}

TEST_F(SessionTest, ProfileHasEveryStepAtAllSizes) {
  for (int64_t n : {1, 7, 64}) {
    SessionCore session = New({.profile = true});
    ExpectRuns(session, n, 5);
    ExpectRuns(session, n, 5);
    std::vector<std::string> kernels;
    for (const KernelProfile& kernel : session.profile().kernels) kernels.push_back(kernel.kernel);
    EXPECT_EQ(kernels, (std::vector<std::string>{"Copy_0", "Copy_1", "Copy_2", "Expand_3"}));
    ASSERT_EQ(session.profile().steps.size(), 5u);
    EXPECT_EQ(session.profile().steps[0].microseconds.count(), 2);
    double sum = 0;
    for (const StepProfile& step : session.profile().steps) {
      EXPECT_GE(step.microseconds.mean(), 0);
      sum += step.microseconds.mean();
    }
    EXPECT_LE(sum, session.profile().run_microseconds.mean() * 1.0001);
  }
}

TEST_F(SessionTest, ProfilingCanBeSwitched) {
  SessionCore session = New();
  ExpectRuns(session, 1, 2);
  EXPECT_TRUE(session.profile().steps.empty());
  session.SetProfiling(true);
  ExpectRuns(session, 1, 2);
  session.SetProfiling(false);
  ExpectRuns(session, 1, 2);
  EXPECT_EQ(session.profile().run_microseconds.count(), 1);
  session.SetProfiling(true);
  EXPECT_EQ(session.profile().run_microseconds.count(), 0);
  std::ostringstream text;
  session.PrintProfile(text);
  EXPECT_NE(text.str().find("model 'test_model' on cpu\nProfile of 0 runs"), std::string::npos);
}

// The model with one more element in t0 than 32-bit indices reach, if N is 3. Nothing touches them,
// so that they cost no memory.
void WideBufferBytes(const int64_t* symbols, int64_t* bytes) {
  Info().buffer_bytes(symbols, bytes);
  if (symbols[0] == 2) bytes[5] = 4 * int64_t{std::numeric_limits<int32_t>::max()};
  if (symbols[0] == 3) bytes[5] = 4 * (int64_t{std::numeric_limits<int32_t>::max()} + 1);
}

TEST_F(SessionTest, WideIndicesAreAskedForWhereNeeded) {
  ModelInfo info = Info();
  info.buffer_bytes = &WideBufferBytes;
  SessionCore session(info, kPrograms, weights_, Device::Cpu());
  ExpectRuns(session, 2, 5);
  EXPECT_FALSE(last_wide);
  ExpectRuns(session, 3, 5);
  EXPECT_TRUE(last_wide);
  ExpectRuns(session, 1, 5);
  EXPECT_FALSE(last_wide);
}

void InconsistentBufferBytes(const int64_t* symbols, int64_t* bytes) {
  Info().buffer_bytes(symbols, bytes);
  bytes[2] += 4;
}

TEST_F(SessionTest, InconsistentTablesAreRefused) {
  ModelInfo info = Info();
  info.buffer_bytes = &InconsistentBufferBytes;
  SessionCore session(info, kPrograms, weights_, Device::Cpu());
  Tensors tensors(3, 4, 1);
  ExpectThrows<Error>([&] { session.Run(tensors.Inputs()); },
                      "model 'test_model' is inconsistent: buffer 'copied' has 100 bytes, but its "
                      "shape needs 96; generate the model again");
}

TEST_F(SessionTest, SessionsRunConcurrently) {
  std::vector<std::thread> threads;
  std::vector<std::string> mismatches(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        SessionCore session(Info(), kPrograms, weights_, Device::Cpu(), {});
        for (int64_t n : {1 + i, 9, 2}) {
          Tensors tensors(n, 3 + i, static_cast<float>(100 * i + round));
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

TEST_F(SessionTest, WeightsFilesAreLoadedConcurrently) {
  const std::string path = testing::TempDir() + "/concurrent.safetensors";
  const std::vector<std::byte> weights = test_model::WeightsFile(3);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size()));
  const int64_t live = Allocations().live_bytes;
  std::vector<std::thread> threads;
  std::vector<std::string> mismatches(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        SessionCore session(Info(), kPrograms, {}, Device::Cpu(), {.weights_file = path});
        Tensors tensors(2, 3, static_cast<float>(i));
        session.Run(tensors.Inputs(), tensors.Outputs());
        if (const std::string mismatch = tensors.Mismatch(3); !mismatch.empty()) {
          mismatches[i] = mismatch;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mismatch : mismatches) EXPECT_EQ(mismatch, "");
  EXPECT_EQ(Allocations().live_bytes, live);
}

// x[4] → y, its first x[0] elements. The only symbol is read between two segments, the first of
// which copies.
constexpr const char* kPrefixSymbols[] = {"count"};
constexpr DimInfo kFour[] = {{.value = 4}};
constexpr DimInfo kCount[] = {{.symbol = 0}};
constexpr TensorInfo kPrefixInputs[] = {{"x", DType::kInt64, kFour}};
constexpr TensorInfo kPrefixOutputs[] = {{"y", DType::kInt64, kCount}};
constexpr BufferInfo kPrefixBuffers[] = {
    {"x", 8, 0, 0}, {"y", 8, 1, 1, 1, /*segment=*/1}, {"copy", 8, 0, 1}};
constexpr StepInfo kPrefixSteps[] = {{"/copy/Identity", "Copy_0"}, {"/prefix/Slice", "Slice_1"}};
constexpr ReadInfo kPrefixReads[] = {{"count", 2, DType::kInt64, 0, 1}};

constexpr SegmentInfo kPrefixSegments[] = {
    {kPrefixReads, [](const int64_t* symbols, int64_t* bytes) { bytes[1] = 8 * symbols[0]; },
     [](const int64_t* symbols, Shape* shapes) { shapes[0] = {symbols[0]}; }}};

// With the weights of the test model, which it does not use.
ModelInfo PrefixInfo() {
  return {.name = "prefix",
          .cpp_namespace = "prefix",
          .generator_version = "test",
          .symbols = kPrefixSymbols,
          .inputs = kPrefixInputs,
          .outputs = kPrefixOutputs,
          .buffers = kPrefixBuffers,
          .steps = kPrefixSteps,
          .graph_hash = Info().graph_hash,
          .weights_bytes = Info().weights_bytes,
          .buffer_bytes = [](const int64_t*, int64_t* bytes) { bytes[0] = bytes[2] = 32; },
          .output_shapes = [](const int64_t*, Shape*) {},
          .segments = kPrefixSegments};
}

// Loads all symbols first, as generated code does.
void EnqueuePrefix(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                   const std::byte*) {
  const int64_t count = symbols[0];
  context.Step(context.segment());
  if (context.segment() == 0) {
    std::memcpy(buffers[2], buffers[0], 32);
  } else {
    std::memcpy(buffers[1], buffers[2], static_cast<size_t>(8 * count));
  }
}

TEST(SegmentTest, StepsTakeSymbolsThatAreNotKnownYet) {
  constexpr BackendProgram kProgram[] = {{Backend::kCpu, &EnqueuePrefix, &kCpuBackend}};
  const ModelInfo info = PrefixInfo();
  const std::vector<std::byte> weights = test_model::WeightsFile();
  SessionCore session(info, kProgram, weights, Device::Cpu(), {});
  for (const int64_t count : {3, 0, 4, 1}) {
    const std::vector<int64_t> x = {count, 7, 8, 9};
    const TensorView input = View<const int64_t>{x.data(), {4}};
    const TensorView y = session.Run(std::span(&input, 1))[0];
    ASSERT_EQ(y.shape, Shape({count}));
    const auto* data = static_cast<const int64_t*>(y.data);
    EXPECT_TRUE(std::equal(data, data + count, x.begin()));
  }
}

}  // namespace
}  // namespace sofie
