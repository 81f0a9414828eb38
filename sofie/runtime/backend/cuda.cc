// The "cuda" backend: one NVIDIA GPU, through the CUDA runtime. Host code; its only kernel is in
// cuda_copy.cu.
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/backend/cuda_copy.h"
#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/error.h"

namespace sofie {
namespace {

// What cuBLASLt asks for to have all its algorithms for fp32 matrix products.
constexpr size_t kWorkspaceBytes = size_t{4} << 20;

// Errors after which the CUDA context of the process stays broken.
bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

std::string Describe(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

// Throws what a failed call means.
void Check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // reported here, so not again by the next check
  std::string message = std::string("CUDA: ") + call + " failed: " + Describe(error);
  if (error == cudaErrorMemoryAllocation) throw MemoryError(message + "; use smaller sizes");
  if (error == cudaErrorNoKernelImageForDevice) {
    message += "; build for this GPU's architecture";
  } else if (IsSticky(error)) {
    message +=
        "; the process can use this GPU no more, restart it; compute-sanitizer finds the kernel";
  }
  throw DeviceError(message);
}

// CUDA allows nothing that waits for a whole device while any of its streams captures: the capture
// fails, or the waiting thread crashes in the driver. Captures hold this, and so does everything
// here that might wait for the device, as making and destroying cuBLASLt's handle does.
std::mutex& DeviceMutex() {
  static auto* mutex = new std::mutex;  // outlives all sessions
  return *mutex;
}

// Makes a device current until the end of the scope. Reports nothing, for use in destructors.
class ScopedDevice {
 public:
  explicit ScopedDevice(int index) {
    if (cudaGetDevice(&previous_) != cudaSuccess) previous_ = index;
    if (previous_ != index) static_cast<void>(cudaSetDevice(index));
    changed_ = previous_ != index;
  }
  ~ScopedDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(previous_));
  }
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

struct FreeDevice {
  void operator()(void* data) const { static_cast<void>(cudaFree(data)); }
};
struct FreeHost {
  void operator()(void* data) const { static_cast<void>(cudaFreeHost(data)); }
};

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(std::unique_ptr<void, FreeDevice> data, size_t bytes, int device)
      : DeviceMemory(static_cast<std::byte*>(data.release()), bytes), device_(device) {
    CountAllocation(bytes);
  }
  ~CudaMemory() override {
    const std::lock_guard lock(DeviceMutex());
    const ScopedDevice device(device_);
    CountFree(bytes());
    FreeDevice()(data());
  }

 private:
  int device_;
};

class PinnedMemory final : public DeviceMemory {
 public:
  PinnedMemory(std::unique_ptr<void, FreeHost> data, size_t bytes)
      : DeviceMemory(static_cast<std::byte*>(data.release()), bytes) {
    CountAllocation(bytes);
  }
  ~PinnedMemory() override {
    const std::lock_guard lock(DeviceMutex());
    CountFree(bytes());
    FreeHost()(data());
  }
};

class CudaStream {
 public:
  CudaStream() {
    const std::lock_guard lock(DeviceMutex());
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~CudaStream() {
    const std::lock_guard lock(DeviceMutex());
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  CudaEvent() { Check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~CudaEvent() {
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void Record(cudaStream_t stream, unsigned flags) {
    Check(cudaEventRecordWithFlags(event_, stream, flags), "cudaEventRecordWithFlags");
  }
  void Wait() { Check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  double MicrosecondsUntil(const CudaEvent& later) const {
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, event_, later.event_), "cudaEventElapsedTime");
    return 1e3 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStepTimer final : public StepTimer {
 public:
  explicit CudaStepTimer(int steps) : events_(static_cast<size_t>(steps) + 1) {
    steps_.reserve(static_cast<size_t>(steps));
  }

  void Begin(LaunchContext& context) override {
    steps_.clear();
    stream_ = static_cast<cudaStream_t>(context.queue());
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    Check(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
    // External: a node of the graph, so that every launch of it records the event.
    record_flags_ =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  }
  void OnStep(int index) override {
    Event(steps_.size()).Record(stream_, record_flags_);
    steps_.push_back(index);
  }
  void End() override { Event(steps_.size()).Record(stream_, record_flags_); }
  double Collect(std::span<double> step_microseconds) override {
    Event(steps_.size()).Wait();
    std::fill(step_microseconds.begin(), step_microseconds.end(), -1.0);
    for (size_t i = 0; i < steps_.size(); ++i) {
      double& total = step_microseconds[steps_[i]];
      total = std::max(total, 0.0) + events_[i].MicrosecondsUntil(events_[i + 1]);
    }
    return events_[0].MicrosecondsUntil(events_[steps_.size()]);
  }

 private:
  CudaEvent& Event(size_t index) {
    if (index == events_.size()) events_.emplace_back();  // a step that came more than once
    return events_[index];
  }

  std::vector<CudaEvent> events_;  // at the start of each step that came, then at the end
  std::vector<int> steps_;         // that came, in order
  cudaStream_t stream_ = nullptr;
  unsigned record_flags_ = cudaEventRecordDefault;
};

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
};
using OwnedGraph = std::unique_ptr<CUgraph_st, DestroyGraph>;

// The node that a kernel became which was just launched into a stream that captures.
cudaGraphNode_t LastNode(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* last = nullptr;  // what the stream's next node will depend on
  size_t count = 0;
  Check(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count),
        "cudaStreamGetCaptureInfo");
  if (status != cudaStreamCaptureStatusActive || count != 1) {
    Check(cudaErrorStreamCaptureInvalidated, "cudaStreamGetCaptureInfo");
  }
  return last[0];
}

// A kernel of a graph that makes copies.
class CopyNode {
 public:
  // Puts the kernel into a stream that captures; it makes no copies yet.
  explicit CopyNode(cudaStream_t stream) {
    void* arguments[1];
    const cudaKernelNodeParams kernel = CopyKernel(batch_, arguments);
    Check(cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams,
                           kernel.sharedMemBytes, stream),
          "cudaLaunchKernel");
    node_ = LastNode(stream);
  }

  // Without copies the node is off: it then costs the GPU less than a kernel.
  void Set(cudaGraphExec_t executable, std::span<const DeviceCopy> copies) {
    CopyBatch batch = NewCopyBatch(copies);
    const bool on = batch.copies[0].bytes > 0;
    if (on && batch != batch_) {
      void* arguments[1];
      const cudaKernelNodeParams kernel = CopyKernel(batch, arguments);
      Check(cudaGraphExecKernelNodeSetParams(executable, node_, &kernel),
            "cudaGraphExecKernelNodeSetParams");
      batch_ = batch;
    }
    if (on == on_) return;
    Check(cudaGraphNodeSetEnabled(executable, node_, on), "cudaGraphNodeSetEnabled");
    on_ = on;
  }

  // In the graph that was captured.
  cudaGraphNode_t node() const { return node_; }

 private:
  cudaGraphNode_t node_ = nullptr;
  CopyBatch batch_ = {};  // the kernel's parameter
  bool on_ = true;
};

// A kernel of a graph that a step launches.
class StepNode {
 public:
  StepNode(cudaGraphNode_t node, const KernelLaunch& launch)
      : node_(node), launch_(launch), argument_(launch.argument.begin(), launch.argument.end()) {
    launch_.argument = {};
  }

  // Gives the kernel this launch's argument. False if it differs in more.
  bool Set(cudaGraphExec_t executable, const KernelLaunch& launch) {
    if (launch.entry != launch_.entry || launch.threads != launch_.threads ||
        launch.shared_bytes != launch_.shared_bytes ||
        !std::equal(launch.blocks, launch.blocks + 3, launch_.blocks) ||
        launch.argument.size() != argument_.size()) {
      return false;
    }
    if (std::equal(argument_.begin(), argument_.end(), launch.argument.begin())) return true;
    void* arguments[] = {const_cast<std::byte*>(launch.argument.data())};
    cudaKernelNodeParams params = {};
    params.func = const_cast<void*>(launch.entry);
    params.gridDim = dim3(launch.blocks[0], launch.blocks[1], launch.blocks[2]);
    params.blockDim = dim3(launch.threads);
    params.sharedMemBytes = launch.shared_bytes;
    params.kernelParams = arguments;
    Check(cudaGraphExecKernelNodeSetParams(executable, node_, &params),
          "cudaGraphExecKernelNodeSetParams");
    std::copy(launch.argument.begin(), launch.argument.end(), argument_.begin());
    return true;
  }

 private:
  cudaGraphNode_t node_;
  KernelLaunch launch_;  // but for the argument
  std::vector<std::byte> argument_;
};

// What a capture is told.
class CaptureObserver final : public LaunchObserver {
 public:
  explicit CaptureObserver(cudaStream_t stream)
      : LaunchObserver(/*launches=*/true), stream_(stream) {}
  void OnKernel(const KernelLaunch& launch) override {
    steps.emplace_back(LastNode(stream_), launch);
  }
  void OnLibraryOperand(const void*) override { ++operands; }

  std::vector<StepNode> steps;
  size_t operands = 0;  // of libraries' calls

 private:
  cudaStream_t stream_;
};

class CudaGraph final : public LaunchGraph {
 public:
  // Instantiates `owned` and uploads it, so that its first launch is like any other. The caller
  // holds DeviceMutex.
  CudaGraph(OwnedGraph owned, std::vector<CopyNode> before, CaptureObserver captured,
            std::vector<CopyNode> after, cudaStream_t stream)
      : graph_(std::move(owned)),
        before_(std::move(before)),
        steps_(std::move(captured.steps)),
        after_(std::move(after)) {
    operands_.reserve(captured.operands);
    cudaGraph_t graph = graph_.get();
    size_t count = 0;
    Check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    if (count > 0) Check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
    nodes_ = static_cast<int64_t>(count);
    const auto copies = [this](cudaGraphNode_t node) {
      const auto is_node = [node](const CopyNode& copy) { return copy.node() == node; };
      return std::any_of(before_.begin(), before_.end(), is_node) ||
             std::any_of(after_.begin(), after_.end(), is_node);
    };
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type;
      Check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
      if (type == cudaGraphNodeTypeKernel && !copies(node)) kernels_.push_back(node);
    }
    Check(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    CountAllocation(0);
    try {
      SetCopies({}, {});
      Check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
    } catch (...) {
      static_cast<void>(cudaGraphExecDestroy(executable_));
      throw;
    }
  }
  ~CudaGraph() override {
    const std::lock_guard lock(DeviceMutex());
    static_cast<void>(cudaGraphExecDestroy(executable_));
  }

  void BeginUpdate() override {
    next_step_ = 0;
    operands_.clear();
  }
  void OnKernel(const KernelLaunch& launch) override {
    if (next_step_ == steps_.size() || !steps_[next_step_].Set(executable_, launch)) ThrowOther();
    ++next_step_;
  }
  void OnLibraryOperand(const void* data) override { operands_.push_back(data); }
  std::span<const void* const> EndUpdate() override {
    if (next_step_ != steps_.size()) ThrowOther();
    return operands_;
  }

  int64_t nodes() const override { return nodes_; }
  int64_t kernels() const override { return static_cast<int64_t>(kernels_.size()); }
  std::vector<std::string> KernelNames() const override {
    std::vector<std::string> names;
    for (cudaGraphNode_t node : kernels_) {
      cudaKernelNodeParams kernel = {};
      const char* name = nullptr;
      // Libraries launch kernels that the runtime does not know; it can't describe them.
      if (cudaGraphKernelNodeGetParams(node, &kernel) == cudaSuccess &&
          cudaFuncGetName(&name, kernel.func) == cudaSuccess && name != nullptr) {
        names.emplace_back(name);
      }
      static_cast<void>(cudaGetLastError());
    }
    return names;
  }
  cudaGraphExec_t executable() const { return executable_; }
  // Of the launches to come.
  void SetCopies(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) {
    SetNodes(before_, before);
    SetNodes(after_, after);
  }

 private:
  [[noreturn]] static void ThrowOther() {
    throw DeviceError("other kernels were captured for these sizes; generate the model again");
  }
  void SetNodes(std::span<CopyNode> nodes, std::span<const DeviceCopy> copies) {
    assert(copies.size() <= nodes.size() * kCopiesPerKernel);
    for (CopyNode& node : nodes) {
      const size_t count = std::min(copies.size(), kCopiesPerKernel);
      node.Set(executable_, copies.first(count));
      copies = copies.subspan(count);
    }
  }

  OwnedGraph graph_;  // its nodes are the names of those of executable_
  std::vector<CopyNode> before_;
  std::vector<StepNode> steps_;  // in the order of their launches
  std::vector<CopyNode> after_;
  size_t next_step_ = 0;               // of an update
  std::vector<const void*> operands_;  // of libraries' calls in an update
  cudaGraphExec_t executable_ = nullptr;
  int64_t nodes_ = 0;
  std::vector<cudaGraphNode_t> kernels_;  // of graph_, the copies' not among them
};

class CudaRecorder final : public GraphRecorder {
 public:
  // Captures on the context's queue, launches into `launch_stream`.
  CudaRecorder(LaunchContext& context, cudaStream_t launch_stream)
      : context_(context), launch_stream_(launch_stream) {}

  LaunchContext& context() override { return context_; }

  void Begin(size_t copies_before) override {
    invalidated_ = false;
    lock_ = std::unique_lock(DeviceMutex());
    // Thread-local: other threads may allocate meanwhile.
    Check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    before_ = AddCopies(copies_before);
    observer_.emplace(stream());
    context_.set_observer(&*observer_);
  }

  std::unique_ptr<LaunchGraph> End(size_t copies_after) override {
    context_.set_observer(nullptr);
    std::vector<CopyNode> after = AddCopies(copies_after);
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream(), &graph);
    invalidated_ = error == cudaErrorStreamCaptureInvalidated;
    Check(error, "cudaStreamEndCapture");
    auto result =
        std::make_unique<CudaGraph>(OwnedGraph(graph), std::move(before_), std::move(*observer_),
                                    std::move(after), launch_stream_);
    lock_.unlock();
    return result;
  }

  bool Abort() noexcept override {
    context_.set_observer(nullptr);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    static_cast<void>(cudaStreamIsCapturing(stream(), &status));
    if (status == cudaStreamCaptureStatusInvalidated) invalidated_ = true;
    if (status != cudaStreamCaptureStatusNone) {
      cudaGraph_t graph = nullptr;
      static_cast<void>(cudaStreamEndCapture(stream(), &graph));
      if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    }
    static_cast<void>(cudaGetLastError());  // the error that led here is on its way to the caller
    if (lock_.owns_lock()) lock_.unlock();
    return invalidated_;
  }

  void Launch(LaunchGraph& launch_graph, std::span<const DeviceCopy> before,
              std::span<const DeviceCopy> after) override {
    auto& graph = static_cast<CudaGraph&>(launch_graph);
    graph.SetCopies(before, after);
    Check(cudaGraphLaunch(graph.executable(), launch_stream_), "cudaGraphLaunch");
  }

 private:
  // Nodes for as many copies, next in the capture.
  std::vector<CopyNode> AddCopies(size_t copies) {
    std::vector<CopyNode> nodes;
    for (size_t i = 0; i < copies; i += kCopiesPerKernel) nodes.emplace_back(stream());
    return nodes;
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(context_.queue()); }

  LaunchContext& context_;
  cudaStream_t launch_stream_;
  std::unique_lock<std::mutex> lock_;  // of DeviceMutex, during a capture
  std::vector<CopyNode> before_;       // of the capture
  std::optional<CaptureObserver> observer_;
  bool invalidated_ = false;
};

// With cuBLASLt's handle goes what waits for the device.
struct DestroyContext {
  void operator()(LaunchContext* context) const {
    const std::lock_guard lock(DeviceMutex());
    const ScopedDevice device(context->device_index());
    delete context;
  }
};
using OwnedContext = std::unique_ptr<LaunchContext, DestroyContext>;

OwnedContext NewContext(int device, cudaStream_t stream) {
  const std::lock_guard lock(DeviceMutex());
  const LaunchContext::Config config = {
      .backend = Backend::kCuda, .device_index = device, .queue = stream, .threads = 1};
  return OwnedContext(new LaunchContext(config, NewCudaBlas(device, stream)));
}

// The device must be current, and a stream that `device` names must be of that device.
class CudaRuntime final : public BackendRuntime {
 public:
  explicit CudaRuntime(const Device& device)
      : device_(device.index()),
        stream_(device.stream() != nullptr ? static_cast<cudaStream_t>(device.stream())
                                           : own_stream_.get()),
        own_context_(NewContext(device_, own_stream_.get())),
        caller_context_(stream_ == own_stream_.get() ? nullptr : NewContext(device_, stream_)),
        recorder_(*own_context_, stream_) {}

  bool host_memory() const override { return false; }
  size_t workspace_bytes() const override { return kWorkspaceBytes; }

  void Activate() override {
    if (active_ == 0) {
      Check(cudaGetDevice(&previous_device_), "cudaGetDevice");
      if (previous_device_ != device_) Check(cudaSetDevice(device_), "cudaSetDevice");
    }
    ++active_;
  }
  void Deactivate() noexcept override {
    if (--active_ > 0) return;
    if (previous_device_ != device_) static_cast<void>(cudaSetDevice(previous_device_));
  }

  std::unique_ptr<DeviceMemory> AllocateDevice(size_t bytes, const char* what) override {
    const std::lock_guard lock(DeviceMutex());
    void* data = nullptr;
    CheckAllocation(cudaMalloc(&data, bytes), "cudaMalloc", bytes, what);
    std::unique_ptr<void, FreeDevice> owned(data);
    return std::make_unique<CudaMemory>(std::move(owned), bytes, device_);
  }
  std::unique_ptr<DeviceMemory> AllocateHost(size_t bytes, const char* what) override {
    const std::lock_guard lock(DeviceMutex());
    void* data = nullptr;
    CheckAllocation(cudaMallocHost(&data, bytes), "cudaMallocHost", bytes, what);
    std::unique_ptr<void, FreeHost> owned(data);
    return std::make_unique<PinnedMemory>(std::move(owned), bytes);
  }

  bool Reaches(const void* data) override {
    cudaPointerAttributes attributes = {};
    Check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
    return attributes.type == cudaMemoryTypeManaged ||
           (attributes.type == cudaMemoryTypeDevice && attributes.device == device_);
  }
  void Copy(void* to, const void* from, size_t bytes, CopyKind kind) override {
    if (bytes == 0) return;
    Check(cudaMemcpyAsync(to, from, bytes, ToCuda(kind), stream_), "cudaMemcpyAsync");
  }
  void Synchronize() override { Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  LaunchContext& context() override {
    return caller_context_ != nullptr ? *caller_context_ : *own_context_;
  }
  GraphRecorder* graphs() override { return &recorder_; }
  std::unique_ptr<StepTimer> NewStepTimer(int steps) override {
    return std::make_unique<CudaStepTimer>(steps);
  }

 private:
  static cudaMemcpyKind ToCuda(CopyKind kind) {
    switch (kind) {
      case CopyKind::kHostToDevice:
        return cudaMemcpyHostToDevice;
      case CopyKind::kDeviceToHost:
        return cudaMemcpyDeviceToHost;
      case CopyKind::kDeviceToDevice:
        return cudaMemcpyDeviceToDevice;
    }
    return cudaMemcpyDefault;
  }

  void CheckAllocation(cudaError_t error, const char* call, size_t bytes, const char* what) const {
    if (error != cudaErrorMemoryAllocation) return Check(error, call);
    static_cast<void>(cudaGetLastError());
    size_t free = 0;
    size_t total = 0;
    Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw MemoryError("cuda:" + std::to_string(device_) + ": " + call + " has no " +
                      std::to_string(bytes) + " bytes for " + what + " (" + std::to_string(free) +
                      " of the GPU's " + std::to_string(total) +
                      " bytes are free); use smaller sizes");
  }

  int device_;
  int previous_device_ = 0;
  int active_ = 0;
  CudaStream own_stream_;
  cudaStream_t stream_;  // the caller's, else own_stream_
  OwnedContext own_context_;
  OwnedContext caller_context_;  // null if the streams are the same
  CudaRecorder recorder_;
};

std::unique_ptr<BackendRuntime> NewCudaRuntime(const Device& device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (error != cudaSuccess || count == 0) {
    const std::string version =
        std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
    throw BackendError(device.ToString() + ": this machine offers no CUDA device (" +
                       Describe(error == cudaSuccess ? cudaErrorNoDevice : error) + "); " +
                       (error == cudaErrorInsufficientDriver
                            ? "install an NVIDIA driver for CUDA " + version + " or newer"
                            : "check nvidia-smi and CUDA_VISIBLE_DEVICES") +
                       ", or use Device::Cpu() or Device::OpenMp()");
  }
  if (device.index() >= count) {
    throw BackendError(device.ToString() + ": this machine has " + std::to_string(count) +
                       " CUDA devices; use an index from 0 to " + std::to_string(count - 1));
  }
  const ScopedDevice scoped(device.index());
  Check(cudaSetDevice(device.index()), "cudaSetDevice");
  if (device.stream() != nullptr) {
    int stream_device = 0;
    Check(cudaStreamGetDevice(static_cast<cudaStream_t>(device.stream()), &stream_device),
          "cudaStreamGetDevice");
    if (stream_device != device.index()) {
      throw ArgumentError("Device::Cuda(" + std::to_string(device.index()) +
                          ", stream): the stream belongs to device " +
                          std::to_string(stream_device) + "; give that index");
    }
  }
  return std::make_unique<CudaRuntime>(device);
}

}  // namespace

constinit const BackendFactory kCudaBackend = {
    .backend = Backend::kCuda,
    .create = &NewCudaRuntime,
};

}  // namespace sofie
