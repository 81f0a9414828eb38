// What a backend gives the runtime core: memory, copies, a queue, graphs and timers; and
// LaunchContext, through which steps reach a queue. Plain C++: no alpaka, no CUDA.
#ifndef SOFIE_RUNTIME_BACKEND_H_
#define SOFIE_RUNTIME_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sofie/runtime/device.h"

namespace sofie {

// Matrix products on one queue, with whatever they cache. sofie/runtime/blas defines the
// implementations and makes them.
class Blas {
 public:
  virtual ~Blas() = default;
};

// Told when a step begins.
class StepHook {
 public:
  virtual ~StepHook() = default;
  virtual void OnStep(int index) = 0;
};

// What a thread's tile of rows takes on the CPU: half of a usual second-level cache.
inline constexpr size_t kHostWorkspaceBytesPerThread = size_t{512} << 10;

// A GPU kernel as a step launches it.
struct KernelLaunch {
  const void* entry = nullptr;
  uint32_t blocks[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
  std::span<const std::byte> argument;  // the only one, by value
};

// Told of all that steps put into a queue, or would put there.
class LaunchObserver {
 public:
  // Without `launches` steps only tell what they would launch.
  explicit LaunchObserver(bool launches) : launches_(launches) {}
  virtual ~LaunchObserver() = default;
  bool launches() const { return launches_; }
  // A kernel; it is the last thing in the queue if it is there.
  virtual void OnKernel(const KernelLaunch& launch) = 0;
  // An operand of a library's call, whose kernels are the library's business.
  virtual void OnLibraryOperand(const void* data) = 0;

 private:
  bool launches_;
};

// A queue of one backend and all that a step needs to get into it. One thread at a time.
class LaunchContext {
 public:
  struct Config {
    Backend backend = Backend::kCpu;
    int device_index = 0;
    void* queue = nullptr;  // cudaStream_t for CUDA; null for the CPU backends
    int threads = 1;        // host threads a step may use
  };

  LaunchContext(const Config& config, std::unique_ptr<Blas> blas)
      : config_(config), blas_(std::move(blas)) {}
  LaunchContext(const LaunchContext&) = delete;
  LaunchContext& operator=(const LaunchContext&) = delete;

  Backend backend() const { return config_.backend; }
  int device_index() const { return config_.device_index; }
  void* queue() const { return config_.queue; }
  int threads() const { return config_.threads; }
  Blas* blas() const { return blas_.get(); }

  // True if any buffer has more than INT32_MAX elements: use 64-bit indices.
  bool wide() const { return wide_; }
  void set_wide(bool wide) { wide_ = wide; }

  // Scratch of a step, 256-byte aligned: for libraries on a GPU, for tiles on the CPU, where it has
  // kHostWorkspaceBytesPerThread for each thread. Steps of one queue share it, since they run one
  // after another.
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  void set_workspace(void* data, size_t bytes) {
    workspace_ = data;
    workspace_bytes_ = bytes;
  }

  // What random numbers without a seed start from: the session's seed and the number of its runs so
  // far, uint64_t each; null where the model has no such numbers. The last step counts the run.
  void* random_state() const { return random_state_; }
  void set_random_state(void* data) { random_state_ = data; }

  // Which segment's steps are to be launched: 0 unless the model has ModelInfo::segments.
  int segment() const { return segment_; }
  void set_segment(int segment) { segment_ = segment; }

  // Step `index` begins: names it in errors and tells the profiler, if there is one.
  void Step(int index) {
    step_ = index;
    if (hook_ != nullptr) hook_->OnStep(index);
  }
  // The last step begun, -1 before the first.
  int step() const { return step_; }
  // A run begins.
  void ResetStep() {
    step_ = -1;
    first_ = true;
  }
  // True at the first call of a run: what is ahead in the queue is not of this run.
  bool TakeFirst() { return std::exchange(first_, false); }
  StepHook* hook() const { return hook_; }
  void set_hook(StepHook* hook) { hook_ = hook; }

  // Null but while a graph is captured or updated.
  LaunchObserver* observer() const { return observer_; }
  void set_observer(LaunchObserver* observer) { observer_ = observer; }

  // A slot for what the launcher keeps between runs (an alpaka queue, device properties), so that a
  // run need not make it anew. Destroyed before the queue.
  std::shared_ptr<void>& launcher_state() { return launcher_state_; }

 private:
  Config config_;
  std::unique_ptr<Blas> blas_;
  bool wide_ = false;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  void* random_state_ = nullptr;
  int segment_ = 0;
  int step_ = -1;
  bool first_ = true;
  StepHook* hook_ = nullptr;
  LaunchObserver* observer_ = nullptr;
  std::shared_ptr<void> launcher_state_;
};

// Memory that is freed with the object, from any thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 protected:
  DeviceMemory(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  std::byte* data_;
  size_t bytes_;
};

// A copy within the device's memory.
struct DeviceCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;

  bool operator==(const DeviceCopy&) const = default;
};

// A captured and instantiated sequence of launches, with copies before and after it. While it
// observes a context in place of the queue, it takes the arguments of its kernels from what steps
// would launch there, for its own launches to come.
class LaunchGraph : public LaunchObserver {
 public:
  LaunchGraph() : LaunchObserver(/*launches=*/false) {}
  // The steps are called again, at the same sizes, with buffers that may be elsewhere.
  virtual void BeginUpdate() = 0;
  // All steps were called. Gives the operands of libraries' calls, which stay what they were when
  // they were captured. Throws DeviceError if the steps launched other kernels.
  virtual std::span<const void* const> EndUpdate() = 0;

  // The addresses of inputs and outputs that its kernels have; empty while nobody knows.
  std::vector<void*> addresses;

  virtual int64_t nodes() const = 0;    // those of the copies included
  virtual int64_t kernels() const = 0;  // captured nodes that are kernels
  // The (mangled) names of those kernels, as the driver has them; without the kernels of libraries.
  virtual std::vector<std::string> KernelNames() const = 0;
};

// Captures launches on a queue of the session's own, so that work which others put into the
// caller's queue meanwhile is not captured.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // The context of that queue.
  virtual LaunchContext& context() = 0;
  // `copies_before` and `copies_after`: the most that Launch will be given.
  virtual void Begin(size_t copies_before) = 0;
  virtual std::unique_ptr<LaunchGraph> End(size_t copies_after) = 0;
  // Ends a capture that failed, after Begin or End threw too. True if the capture was invalidated,
  // which other code in the process may have done: then trying again may help.
  virtual bool Abort() noexcept = 0;
  // Puts the graph into the caller-visible queue: the copies `before`, what was captured, the
  // copies `after`. Copies may be others at every launch; the same as at the last one cost least.
  // Nothing is allocated. The device must reach their memory, and no two of either may overlap.
  virtual void Launch(LaunchGraph& graph, std::span<const DeviceCopy> before,
                      std::span<const DeviceCopy> after) = 0;
};

// Times the steps of one run at a time: Begin(), the launches with this as the context's hook,
// End(). Where these were captured, a launch of the graph is a run, timed without the host's share.
// Steps come in the same order at all sizes, so one timer serves many graphs.
class StepTimer : public StepHook {
 public:
  virtual void Begin(LaunchContext& context) = 0;
  virtual void End() = 0;
  // Waits for the run to finish and writes the microseconds of every step, negative where the step
  // did not run; returns the microseconds of the whole run.
  virtual double Collect(std::span<double> step_microseconds) = 0;
};

// Which way a copy goes.
enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// One session's backend: its queue, and the device's memory. One thread at a time, except that
// DeviceMemory may be freed anywhere. Every method that fails throws MemoryError or DeviceError.
class BackendRuntime {
 public:
  virtual ~BackendRuntime() = default;

  // True if kernels use the host's memory, so that nothing needs staging.
  virtual bool host_memory() const = 0;
  // Scratch that LaunchContext::workspace must have.
  virtual size_t workspace_bytes() const = 0;

  // Makes the device current for the calling thread, and what was current before current again.
  virtual void Activate() = 0;
  virtual void Deactivate() noexcept = 0;

  // At least `bytes` of memory, 256-byte aligned. Host memory is such that copies to the device
  // need no further staging. `what` names the purpose in MemoryError.
  virtual std::unique_ptr<DeviceMemory> AllocateDevice(size_t bytes, const char* what) = 0;
  virtual std::unique_ptr<DeviceMemory> AllocateHost(size_t bytes, const char* what) = 0;

  // True if graphs can copy from and to this memory, as they can within the device's own; false if
  // that takes Copy, as for another device's.
  virtual bool Reaches(const void* data) = 0;
  // Copies in the caller-visible queue; host memory on either side may be ordinary memory.
  virtual void Copy(void* to, const void* from, size_t bytes, CopyKind kind) = 0;
  // Waits for all that is in the caller-visible queue.
  virtual void Synchronize() = 0;

  // The context of the caller-visible queue: Device::stream(), or the session's own.
  virtual LaunchContext& context() = 0;

  // Captures and replays launches; null if the backend can't.
  virtual GraphRecorder* graphs() = 0;

  virtual std::unique_ptr<StepTimer> NewStepTimer(int steps) = 0;
};

// Makes a runtime for a device. Throws BackendError if the machine has no such device.
struct BackendFactory {
  Backend backend;
  std::unique_ptr<BackendRuntime> (*create)(const Device& device);
};

extern const BackendFactory kCpuBackend;
extern const BackendFactory kOpenMpBackend;
extern const BackendFactory kCudaBackend;

// Keeps a runtime's device current.
class ActiveDevice {
 public:
  explicit ActiveDevice(BackendRuntime& runtime) : runtime_(runtime) { runtime_.Activate(); }
  ~ActiveDevice() { runtime_.Deactivate(); }
  ActiveDevice(const ActiveDevice&) = delete;
  ActiveDevice& operator=(const ActiveDevice&) = delete;

 private:
  BackendRuntime& runtime_;
};

// Totals over all sessions of the process, of what AllocateDevice and AllocateHost gave out and of
// graphs instantiated. A run that claims to allocate nothing leaves `allocations` as it was.
struct AllocationCounters {
  int64_t allocations = 0;  // ever made, graphs included
  int64_t live_bytes = 0;   // not yet freed
  int64_t peak_bytes = 0;   // the most that was live at once
};
AllocationCounters Allocations();
// For backends: account for an allocation and its end. A graph counts with 0 bytes.
void CountAllocation(size_t bytes);
void CountFree(size_t bytes);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_BACKEND_H_
