#include "sofie/runtime/backend/host_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sofie/runtime/arena.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

constexpr auto kAlignment = static_cast<std::align_val_t>(kArenaAlignment);

struct FreeBlock {
  void operator()(std::byte* data) const { operator delete(data, kAlignment); }
};
using OwnedBlock = std::unique_ptr<std::byte, FreeBlock>;

class HostMemory final : public DeviceMemory {
 public:
  HostMemory(OwnedBlock data, size_t bytes) : DeviceMemory(data.release(), bytes) {
    CountAllocation(bytes);
  }
  ~HostMemory() override {
    CountFree(bytes());
    FreeBlock()(data());
  }
};

class HostStepTimer final : public StepTimer {
 public:
  explicit HostStepTimer(int steps) { marks_.reserve(static_cast<size_t>(steps) + 1); }

  void Begin(LaunchContext&) override {
    marks_.clear();
    begin_ = Clock::now();
  }
  void OnStep(int index) override { marks_.emplace_back(index, Clock::now()); }
  void End() override { end_ = Clock::now(); }
  double Collect(std::span<double> step_microseconds) override {
    std::fill(step_microseconds.begin(), step_microseconds.end(), -1.0);
    for (size_t i = 0; i < marks_.size(); ++i) {
      const auto until = i + 1 < marks_.size() ? marks_[i + 1].second : end_;
      double& total = step_microseconds[marks_[i].first];
      total = std::max(total, 0.0) + Microseconds(until - marks_[i].second);
    }
    return Microseconds(end_ - begin_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double Microseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }

  std::vector<std::pair<int, Clock::time_point>> marks_;
  Clock::time_point begin_;
  Clock::time_point end_;
};

class HostRuntime final : public BackendRuntime {
 public:
  HostRuntime(Backend backend, int threads)
      : context_({.backend = backend, .threads = threads}, NewCpuBlas(threads)) {}

  bool host_memory() const override { return true; }
  size_t workspace_bytes() const override {
    return kHostWorkspaceBytesPerThread * static_cast<size_t>(context_.threads());
  }
  void Activate() override {}
  void Deactivate() noexcept override {}

  std::unique_ptr<DeviceMemory> AllocateDevice(size_t bytes, const char* what) override {
    void* data = operator new(bytes, kAlignment, std::nothrow);
    if (data == nullptr) {
      throw MemoryError(std::string(NameOf(context_.backend())) + ": the host has no " +
                        std::to_string(bytes) + " bytes of memory for " + what +
                        "; use smaller sizes");
    }
    OwnedBlock owned(static_cast<std::byte*>(data));
    return std::make_unique<HostMemory>(std::move(owned), bytes);
  }
  std::unique_ptr<DeviceMemory> AllocateHost(size_t bytes, const char* what) override {
    return AllocateDevice(bytes, what);
  }

  bool Reaches(const void*) override { return true; }
  void Copy(void* to, const void* from, size_t bytes, CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void Synchronize() override {}
  LaunchContext& context() override { return context_; }
  GraphRecorder* graphs() override { return nullptr; }
  std::unique_ptr<StepTimer> NewStepTimer(int steps) override {
    return std::make_unique<HostStepTimer>(steps);
  }

 private:
  LaunchContext context_;
};

}  // namespace

std::unique_ptr<BackendRuntime> NewHostRuntime(Backend backend, int threads) {
  return std::make_unique<HostRuntime>(backend, threads);
}

}  // namespace sofie
