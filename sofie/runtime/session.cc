#include "sofie/runtime/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "sofie/runtime/binding.h"

namespace sofie {
namespace {

// Limits far above any machine's memory, and far enough below the largest int64_t that the shape
// program does not overflow.
constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;
constexpr int64_t kMaxSymbol = int64_t{1} << 40;

// Other threads of the program may spoil a capture; see GraphRecorder::Abort.
constexpr int kCaptureAttempts = 10;

const BackendProgram& FindProgram(const ModelInfo& info, std::span<const BackendProgram> programs,
                                  Backend backend) {
  std::string present;
  for (const BackendProgram& program : programs) {
    if (program.backend == backend) return program;
    if (!present.empty()) present += ",";
    present += NameOf(program.backend);
  }
  throw BackendError(std::string("this build of model '") + info.name + "' has no " +
                     NameOf(backend) + " backend, only " + present +
                     "; build it with --//sofie:backends=" + present + "," + NameOf(backend) +
                     " (from another workspace: --@sofie//sofie:backends=…)");
}

int CheckedPlanCacheSize(const SessionOptions& options) {
  if (options.plan_cache_size >= 1) return options.plan_cache_size;
  throw ArgumentError("SessionOptions::plan_cache_size = " +
                      std::to_string(options.plan_cache_size) + "; it must be at least 1");
}

bool AnyHost(std::span<const TensorView> views) {
  return std::any_of(views.begin(), views.end(),
                     [](const TensorView& view) { return view.memory == Memory::kHost; });
}

size_t BytesOf(DType dtype, const Shape& shape) { return sofie::BytesOf(dtype, shape.elements()); }

// True if every buffer of `a` fits into the one of `b`.
bool Within(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](int64_t x, int64_t y) { return x <= y; });
}

// The generated shape program has to agree with the generated tables.
void CheckGenerated(const ModelInfo& info, const char* name, int64_t bytes, int64_t expected) {
  if (bytes == expected) return;
  throw Error(std::string("model '") + info.name + "' is inconsistent: buffer '" + name + "' has " +
              std::to_string(bytes) + " bytes, but its shape needs " + std::to_string(expected) +
              "; generate the model again");
}

// Waits for the queue if an exception ends the scope.
class WaitOnFailure {
 public:
  explicit WaitOnFailure(BackendRuntime& runtime)
      : runtime_(runtime), exceptions_(std::uncaught_exceptions()) {}
  ~WaitOnFailure() {
    if (std::uncaught_exceptions() == exceptions_) return;
    try {
      runtime_.Synchronize();
    } catch (...) {
      // What failed first is on its way to the caller.
    }
  }
  WaitOnFailure(const WaitOnFailure&) = delete;
  WaitOnFailure& operator=(const WaitOnFailure&) = delete;

 private:
  BackendRuntime& runtime_;
  int exceptions_;
};

// Unhooks the profiler however the run ends.
class ScopedHook {
 public:
  ScopedHook(LaunchContext& context, StepHook* hook) : context_(context) {
    context_.set_hook(hook);
  }
  ~ScopedHook() { context_.set_hook(nullptr); }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;

 private:
  LaunchContext& context_;
};

}  // namespace

template <class Action>
decltype(auto) SessionCore::WithHostMemory(const Action& action) const {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    throw MemoryError(Where() + ": the host has no memory left; use smaller sizes");
  }
}

SessionCore::SessionCore(const ModelInfo& info, std::span<const BackendProgram> programs,
                         std::span<const std::byte> embedded_weights, const Device& device,
                         const SessionOptions& options)
    : info_(info),
      program_(FindProgram(info, programs, device.backend())),
      device_(device),
      options_(options),
      plans_(static_cast<size_t>(CheckedPlanCacheSize(options))),
      symbols_(info.symbols.size()),
      buffers_(info.buffers.size()),
      outputs_(info.outputs.size()),
      reach_(info.inputs.size() + info.outputs.size()) {
  copies_before_.reserve(info.inputs.size());
  copies_after_.reserve(info.outputs.size());
  WithHostMemory([&] {
    runtime_ = program_.runtime->create(device);
    ActiveDevice active(*runtime_);
    weights_ = LoadWeights(info, embedded_weights, options.weights_file, device, *runtime_);
    if (info.has_random_state) MakeRandomState();
    SetProfiling(options.profile);
  });
}

void SessionCore::MakeRandomState() {
  const uint64_t state[2] = {options_.random_seed, 0};
  random_state_ = runtime_->AllocateDevice(sizeof(state), "the state of random numbers");
  runtime_->Copy(random_state_->data(), state, sizeof(state), CopyKind::kHostToDevice);
  runtime_->Synchronize();
  runtime_->context().set_random_state(random_state_->data());
  if (runtime_->graphs() != nullptr) {
    runtime_->graphs()->context().set_random_state(random_state_->data());
  }
}

SessionCore::~SessionCore() {
  try {
    Synchronize();
  } catch (...) {
    // The device failed earlier; whoever ran it was told, and freeing needs no working device.
  }
}

void SessionCore::Run(std::span<const TensorView> inputs,
                      std::span<const MutableTensorView> outputs) {
  WithHostMemory([&] { RunInto(inputs, outputs); });
}

std::span<const TensorView> SessionCore::Run(std::span<const TensorView> inputs) {
  return WithHostMemory([&] { return RunOwned(inputs); });
}

void SessionCore::Enqueue(std::span<const TensorView> inputs,
                          std::span<const MutableTensorView> outputs) {
  WithHostMemory([&] { EnqueueSteps(inputs, outputs); });
}

void SessionCore::Reserve(std::span<const int64_t> symbols) {
  WithHostMemory([&] { ReserveFor(symbols); });
}

void SessionCore::Prepare(std::span<const int64_t> symbols) {
  WithHostMemory([&] {
    CheckSymbols(info_, symbols);
    ActiveDevice active(*runtime_);
    PlanFor(symbols, /*with_graph=*/true);
  });
}

void SessionCore::RunInto(std::span<const TensorView> inputs,
                          std::span<const MutableTensorView> outputs) {
  CheckMemory(inputs);
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  Plan& plan = PlanFor(symbols_, /*with_graph=*/true);
  CheckOutputs(info_, plan.output_shapes, inputs, outputs);
  bool any_host = AnyHost(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].memory == Memory::kHost) {
      any_host = true;
    } else if (runtime_->host_memory()) {
      throw ArgumentError(std::string("output '") + info_.outputs[i].name +
                          "' is device memory, but " + Where() + " writes host memory");
    }
  }
  if (runtime_->host_memory()) {
    SetArenaBuffers(plan);
    for (size_t i = 0; i < inputs.size(); ++i) buffers_[i] = const_cast<void*>(inputs[i].data);
    for (size_t i = 0; i < outputs.size(); ++i) buffers_[inputs.size() + i] = outputs[i].data;
    RunDirectly(plan);
    return;
  }
  ExecuteStaged(plan, inputs, outputs);
  if (any_host) runtime_->Synchronize();
}

std::span<const TensorView> SessionCore::RunOwned(std::span<const TensorView> inputs) {
  CheckMemory(inputs);
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  Plan& plan = PlanFor(symbols_, /*with_graph=*/true);
  const bool host = inputs.empty() || AnyHost(inputs);
  const bool staged = !runtime_->host_memory();
  if (staged) {
    ExecuteStaged(plan, inputs, {});
  } else {
    SetArenaBuffers(plan);
    for (size_t i = 0; i < inputs.size(); ++i) buffers_[i] = const_cast<void*>(inputs[i].data);
    RunDirectly(plan);
  }
  int64_t staging_offset = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorInfo& info = info_.outputs[i];
    const size_t bytes = BytesOf(info.dtype, plan.output_shapes[i]);
    std::byte* data = ArenaAddress(plan, inputs.size() + i);
    if (staged && host && bytes > 0) {
      std::byte* to = host_staging_->data() + staging_offset;
      runtime_->Copy(to, data, bytes, CopyKind::kDeviceToHost);
      data = to;
      staging_offset += AlignUp(static_cast<int64_t>(bytes));
    }
    outputs_[i] =
        TensorView(data, info.dtype, plan.output_shapes[i], host ? Memory::kHost : Memory::kDevice);
  }
  if (staged && host) runtime_->Synchronize();
  return outputs_;
}

void SessionCore::EnqueueSteps(std::span<const TensorView> inputs,
                               std::span<const MutableTensorView> outputs) {
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  Plan& plan = PlanFor(symbols_, /*with_graph=*/false);
  CheckOutputs(info_, plan.output_shapes, inputs, outputs);
  SetArenaBuffers(plan);
  const auto take = [&](const char* kind, const TensorInfo& info, Memory memory) {
    if (memory == Memory::kDevice || runtime_->host_memory()) return;
    throw ArgumentError(std::string(kind) + " '" + info.name +
                        "' is host memory, but Enqueue takes device memory; use Run");
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    take("input", info_.inputs[i], inputs[i].memory);
    buffers_[i] = const_cast<void*>(inputs[i].data);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    take("output", info_.outputs[i], outputs[i].memory);
    buffers_[inputs.size() + i] = outputs[i].data;
  }
  RunDirectly(plan);
}

void SessionCore::ReserveFor(std::span<const int64_t> symbols) {
  CheckSymbols(info_, symbols);
  ActiveDevice active(*runtime_);
  Plan plan = NewPlan(symbols);
  EnsureArena(plan);
  EnsureHostStaging(plan);
  for (const Reservation& other : reservations_) {
    if (Within(plan.buffer_bytes, other.buffer_bytes)) return;
  }
  std::erase_if(reservations_, [&](const Reservation& other) {
    return Within(other.buffer_bytes, plan.buffer_bytes);
  });
  reservations_.push_back(
      {.buffer_bytes = std::move(plan.buffer_bytes), .layout = std::move(plan.layout)});
}

void SessionCore::SetProfiling(bool on) {
  if (on && !profiling_) {
    ActiveDevice active(*runtime_);
    for (Plan& plan : plans_.plans()) plan.profiled_graph.reset();  // they hold the old timer
    profiler_ = std::make_unique<Profiler>(
        info_, runtime_->NewStepTimer(static_cast<int>(info_.steps.size())));
  }
  profiling_ = on;
}

const Profile& SessionCore::profile() {
  static const Profile empty;
  return profiler_ ? profiler_->profile() : empty;
}

void SessionCore::PrintProfile(std::ostream& stream) {
  stream << Where() << "\n";
  sofie::PrintProfile(profile(), stream);
}

std::vector<std::string> SessionCore::GraphKernels() const {
  if (plans_.size() == 0 || plans_.plans().front().graph == nullptr) return {};
  return plans_.plans().front().graph->KernelNames();
}

MemoryReport SessionCore::memory() const {
  MemoryReport report{.weights = weights_->bytes(),
                      .weights_allocated = weights_->allocated_bytes(),
                      .arena = arena_ ? arena_->bytes() : 0,
                      .workspace = runtime_->workspace_bytes(),
                      .host_staging = host_staging_ ? host_staging_->bytes() : 0,
                      .limit = options_.memory_limit,
                      .plans = static_cast<int>(plans_.size())};
  for (const Plan& plan : plans_.plans()) report.graphs += plan.graph != nullptr;
  if (plans_.size() > 0) {
    const Plan& plan = plans_.plans().front();
    report.plan_packed = static_cast<size_t>(plan.layout.bytes);
    for (size_t i = 0; i < plan.buffer_bytes.size(); ++i) {
      if (InArena(i)) report.plan_unpacked += AlignUp(plan.buffer_bytes[i]);
    }
    if (plan.graph != nullptr) {
      report.graph_nodes = plan.graph->nodes();
      report.graph_kernels = plan.graph->kernels();
    }
  }
  return report;
}

void SessionCore::PrintMemory(std::ostream& stream) const {
  const MemoryReport report = memory();
  stream << "Memory of " << Where() << ", in bytes\n"
         << "  weights       " << report.weights << " (allocated: " << report.weights_allocated
         << ", shared by the sessions on this device)\n"
         << "  arena         " << report.arena << " (of these, workspace: " << report.workspace
         << ")\n"
         << "  host staging  " << report.host_staging << "\n"
         << "  plans         " << report.plans << " (captured: " << report.graphs << ")\n";
  if (plans_.size() == 0) return;
  const Plan& plan = plans_.plans().front();
  stream << "Plan for " << SymbolsToString(info_, plan.symbols) << ": " << report.plan_packed
         << " bytes in the arena, " << report.plan_unpacked << " without sharing\n"
         << "      offset        bytes  live in steps  buffer\n";
  for (size_t i = 0; i < plan.buffer_bytes.size(); ++i) {
    if (!InArena(i)) continue;
    char text[80];
    std::snprintf(text, sizeof(text), "%12lld %12lld  %6d..%-5d  ",
                  static_cast<long long>(plan.layout.offsets[i]),
                  static_cast<long long>(plan.buffer_bytes[i]), info_.buffers[i].first_step,
                  info_.buffers[i].last_step);
    stream << text << info_.buffers[i].name << "\n";
  }
}

void SessionCore::Synchronize() {
  ActiveDevice active(*runtime_);
  runtime_->Synchronize();
}

bool SessionCore::InArena(size_t buffer) const {
  return !runtime_->host_memory() || buffer >= info_.inputs.size();
}

std::string SessionCore::Where() const {
  return std::string("model '") + info_.name + "' on " + device_.ToString();
}

Plan& SessionCore::PlanFor(std::span<const int64_t> symbols, bool with_graph) {
  const bool capture = with_graph && runtime_->graphs() != nullptr;
  if (Plan* plan = plans_.Find(symbols)) {
    EnsureArena(*plan);  // grows only if an earlier growth failed
    if (capture) {
      EnsureHostStaging(*plan);  // likewise
      if (plan->graph == nullptr) plan->graph = Capture(*plan, nullptr);
    }
    return *plan;
  }
  Plan plan = NewPlan(symbols);
  FitIntoReservation(plan);
  EnsureArena(plan);
  if (capture) {
    plan.graph = Capture(plan, nullptr);
    EnsureHostStaging(plan);  // whichever memory this run uses, the next may use the other
  }
  return plans_.Insert(std::move(plan));
}

Plan SessionCore::NewPlan(std::span<const int64_t> symbols) const {
  const auto check_bytes = [&](const char* name, int64_t bytes) {
    if (bytes >= 0 && bytes <= kMaxBufferBytes) return;
    throw MemoryError(Where() + ": '" + name + "' for " + SymbolsToString(info_, symbols) +
                      " is larger than any memory; use smaller sizes");
  };
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] > kMaxSymbol) check_bytes(info_.symbols[i], -1);
  }
  std::vector<int64_t> input_bytes;
  for (const TensorInfo& input : info_.inputs) {
    Shape shape;
    for (const DimInfo& dim : input.dims) {
      shape.Append(dim.symbol >= 0 ? symbols[dim.symbol] : dim.value);
    }
    check_bytes(input.name, shape.elements());
    input_bytes.push_back(static_cast<int64_t>(BytesOf(input.dtype, shape)));
  }

  Plan plan;
  plan.symbols.assign(symbols.begin(), symbols.end());
  plan.buffer_bytes.resize(info_.buffers.size());
  plan.output_shapes.resize(info_.outputs.size());
  info_.buffer_bytes(symbols.data(), plan.buffer_bytes.data());
  info_.output_shapes(symbols.data(), plan.output_shapes.data());

  const size_t inputs = info_.inputs.size();
  std::vector<ArenaRequest> requests(info_.buffers.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const BufferInfo& buffer = info_.buffers[i];
    const int64_t bytes = plan.buffer_bytes[i];
    check_bytes(buffer.name, bytes);
    const int64_t elements = bytes / buffer.element_size * buffer.elements_per_byte;
    if (elements > std::numeric_limits<int32_t>::max()) plan.wide = true;
    if (!InArena(i)) continue;
    requests[i] = {.bytes = bytes, .first_step = buffer.first_step, .last_step = buffer.last_step};
    // Inputs are there before the first step, and outputs are read after the last.
    if (i < inputs) requests[i].first_step = 0;
    if (i >= inputs && i < inputs + info_.outputs.size()) {
      requests[i].last_step = std::numeric_limits<int32_t>::max();
    }
  }
  for (size_t i = 0; i < inputs; ++i) {
    CheckGenerated(info_, info_.buffers[i].name, plan.buffer_bytes[i], input_bytes[i]);
  }
  for (size_t i = 0; i < info_.outputs.size(); ++i) {
    CheckGenerated(info_, info_.buffers[inputs + i].name, plan.buffer_bytes[inputs + i],
                   static_cast<int64_t>(BytesOf(info_.outputs[i].dtype, plan.output_shapes[i])));
  }
  plan.layout = PackArena(requests);
  return plan;
}

// Packing is not monotonic: smaller buffers can pack into more bytes. Any buffers also fit where
// the larger ones of a reservation lie.
void SessionCore::FitIntoReservation(Plan& plan) const {
  if (arena_ && plan.layout.bytes + runtime_->workspace_bytes() <= arena_->bytes()) return;
  for (const Reservation& reservation : reservations_) {
    if (plan.layout.bytes > reservation.layout.bytes &&
        Within(plan.buffer_bytes, reservation.buffer_bytes)) {
      plan.layout = reservation.layout;
      return;
    }
  }
}

void SessionCore::EnsureArena(const Plan& plan) {
  const size_t workspace = runtime_->workspace_bytes();
  const size_t wanted = workspace + static_cast<size_t>(plan.layout.bytes);
  if (wanted <= (arena_ ? arena_->bytes() : 0)) return;
  if (options_.memory_limit > 0 && wanted > options_.memory_limit) {
    throw MemoryError(Where() + ": the arena for " + SymbolsToString(info_, plan.symbols) +
                      " wants " + std::to_string(wanted) +
                      " bytes, but SessionOptions::memory_limit is " +
                      std::to_string(options_.memory_limit) + "; raise it or use smaller sizes");
  }
  // Freed before the new one is allocated, so that no more is needed than what is wanted. Graphs
  // hold addresses in the old one.
  runtime_->Synchronize();
  std::vector<Plan*> captured;
  for (Plan& other : plans_.plans()) {
    if (other.graph != nullptr) captured.push_back(&other);
    other.graph.reset();
    other.profiled_graph.reset();
  }
  arena_.reset();
  arena_ = runtime_->AllocateDevice(wanted, "the arena");
  runtime_->context().set_workspace(arena_->data(), workspace);
  if (runtime_->graphs() != nullptr) {
    runtime_->graphs()->context().set_workspace(arena_->data(), workspace);
  }
  // Now rather than when they run next: a run at known sizes must not allocate.
  for (Plan* other : captured) other->graph = Capture(*other, nullptr);
}

void SessionCore::EnsureHostStaging(const Plan& plan) {
  if (runtime_->host_memory()) return;
  int64_t wanted = 0;
  for (size_t i = 0; i < info_.outputs.size(); ++i) {
    wanted += AlignUp(plan.buffer_bytes[info_.inputs.size() + i]);
  }
  if (static_cast<size_t>(wanted) <= (host_staging_ ? host_staging_->bytes() : 0)) return;
  // The old one goes only when the new one is there: a failure leaves the session usable.
  host_staging_ = runtime_->AllocateHost(static_cast<size_t>(wanted), "host outputs");
}

std::unique_ptr<LaunchGraph> SessionCore::Capture(const Plan& plan, StepTimer* timer) {
  GraphRecorder& recorder = *runtime_->graphs();
  SetArenaBuffers(plan);
  for (int attempt = 1;; ++attempt) {
    try {
      recorder.Begin(info_.inputs.size());
      CallEnqueue(recorder.context(), plan, timer);
      return recorder.End(info_.outputs.size());
    } catch (...) {
      const bool invalidated = recorder.Abort();
      if (!invalidated || attempt == kCaptureAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
  }
}

void SessionCore::CallEnqueue(LaunchContext& context, const Plan& plan, StepTimer* timer) {
  context.ResetStep();
  context.set_wide(plan.wide);
  if (timer != nullptr) timer->Begin(context);
  ScopedHook hook(context, timer);
  try {
    program_.enqueue(context, plan.symbols.data(), buffers_.data(), weights_->data());
  } catch (const std::exception& error) {
    std::string message = Where();
    if (context.step() >= 0 && static_cast<size_t>(context.step()) < info_.steps.size()) {
      const StepInfo& step = info_.steps[context.step()];
      message += std::string(", step ") + std::to_string(context.step()) + " '" + step.name +
                 "' (" + step.kernel + ")";
    }
    message += ", " + SymbolsToString(info_, plan.symbols) + ": ";
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
      throw MemoryError(message + "no host memory");
    }
    if (dynamic_cast<const MemoryError*>(&error) != nullptr) {
      throw MemoryError(message + error.what());
    }
    throw DeviceError(message + error.what());
  }
  if (timer != nullptr) timer->End();
}

void SessionCore::RunDirectly(const Plan& plan) {
  CallEnqueue(runtime_->context(), plan, profiling_ ? &profiler_->timer() : nullptr);
  if (profiling_) profiler_->Collect(plan.symbols);
}

void SessionCore::ExecuteStaged(Plan& plan, std::span<const TensorView> inputs,
                                std::span<const MutableTensorView> outputs) {
  GraphRecorder* recorder = runtime_->graphs();
  const auto in_graph = [&](const auto& view, size_t index) {
    return recorder != nullptr && view.memory == Memory::kDevice &&
           Reaches(reach_[index], view.data);
  };
  // Copies of the caller's host memory may be under way when something fails: they end first.
  const WaitOnFailure wait(*runtime_);
  copies_before_.clear();
  copies_after_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(plan.buffer_bytes[i]);
    if (bytes == 0) continue;
    std::byte* to = ArenaAddress(plan, i);
    if (in_graph(inputs[i], i)) {
      copies_before_.push_back({.to = to, .from = inputs[i].data, .bytes = bytes});
    } else {
      runtime_->Copy(
          to, inputs[i].data, bytes,
          inputs[i].memory == Memory::kHost ? CopyKind::kHostToDevice : CopyKind::kDeviceToDevice);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t buffer = inputs.size() + i;
    const auto bytes = static_cast<size_t>(plan.buffer_bytes[buffer]);
    if (bytes == 0 || !in_graph(outputs[i], buffer)) continue;
    copies_after_.push_back(
        {.to = outputs[i].data, .from = ArenaAddress(plan, buffer), .bytes = bytes});
  }
  if (recorder == nullptr) {
    SetArenaBuffers(plan);
    RunDirectly(plan);
  } else if (!profiling_) {
    recorder->Launch(*plan.graph, copies_before_, copies_after_);
  } else {
    if (plan.profiled_graph == nullptr) {
      plan.profiled_graph = Capture(plan, &profiler_->timer());
    }
    recorder->Launch(*plan.profiled_graph, copies_before_, copies_after_);
    profiler_->Collect(plan.symbols);
  }
  if (copies_after_.size() == outputs.size()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t buffer = inputs.size() + i;
    const auto bytes = static_cast<size_t>(plan.buffer_bytes[buffer]);
    if (bytes == 0 || in_graph(outputs[i], buffer)) continue;
    runtime_->Copy(
        outputs[i].data, ArenaAddress(plan, buffer), bytes,
        outputs[i].memory == Memory::kHost ? CopyKind::kDeviceToHost : CopyKind::kDeviceToDevice);
  }
}

bool SessionCore::Reaches(Reach& known, const void* data) {
  if (known.data != data) known = {.data = data, .reaches = runtime_->Reaches(data)};
  return known.reaches;
}

void SessionCore::SetArenaBuffers(const Plan& plan) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i] = InArena(i) ? ArenaAddress(plan, i) : nullptr;
  }
}

std::byte* SessionCore::ArenaAddress(const Plan& plan, size_t buffer) const {
  if (arena_ == nullptr) return nullptr;
  return arena_->data() + runtime_->workspace_bytes() + plan.layout.offsets[buffer];
}

void SessionCore::CheckMemory(std::span<const TensorView> inputs) const {
  if (!runtime_->host_memory()) return;
  for (size_t i = 0; i < std::min(inputs.size(), info_.inputs.size()); ++i) {
    if (inputs[i].memory == Memory::kDevice) {
      throw ArgumentError(std::string("input '") + info_.inputs[i].name +
                          "' is device memory, but " + Where() +
                          " reads host memory; copy it to the host first");
    }
  }
}

}  // namespace sofie
