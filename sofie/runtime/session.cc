#include "sofie/runtime/session.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "sofie/runtime/binding.h"
#include "sofie/runtime/row_offsets.h"
#include "sofie/runtime/slices.h"

namespace sofie {
namespace {

// Limits far above any machine's memory, and far enough below the largest int64_t that the shape
// program does not overflow.
constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;
constexpr int64_t kMaxSymbol = int64_t{1} << 40;

// Other threads of the program may spoil a capture; see GraphRecorder::Abort.
constexpr int kCaptureAttempts = 10;

// Views are used in place if they are aligned like this: no kernel reads or writes more at once.
constexpr size_t kInPlaceAlignment = 16;
// Addresses that are new to a session are given to a graph's kernels only when they come again, or
// for this many bytes. Measured on an H200 with ParticleNet, whose graph has 24 kernels: the update
// takes the host 17 us, a copy by the graph's first kernel 3 us, and the GPU 2 us and 0.5 us a MiB.
constexpr size_t kBytesWorthAnUpdate = size_t{16} << 20;

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

// The most bytes that an element of a tensor has.
constexpr size_t kMaxElementBytes = 8;

template <class T>
void ReadAs(const void* data, std::span<int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      const bool fits = std::in_range<int64_t>(element);
      values[i] = fits ? static_cast<int64_t>(element) : std::numeric_limits<int64_t>::max();
    } else {
      values[i] = std::bit_cast<int64_t>(static_cast<double>(element));
    }
  }
}

// Elements of a tensor as values of symbols; see ModelInfo::symbols.
void ReadElements(DType dtype, const void* data, std::span<int64_t> values) {
  switch (dtype) {
    case DType::kFloat32:
      return ReadAs<float>(data, values);
    case DType::kFloat64:
      return ReadAs<double>(data, values);
    case DType::kFloat16:
      return ReadAs<Float16>(data, values);
    case DType::kBFloat16:
      return ReadAs<BFloat16>(data, values);
    case DType::kInt8:
      return ReadAs<int8_t>(data, values);
    case DType::kInt16:
      return ReadAs<int16_t>(data, values);
    case DType::kInt32:
      return ReadAs<int32_t>(data, values);
    case DType::kInt64:
      return ReadAs<int64_t>(data, values);
    case DType::kUInt8:
    case DType::kBool:
      return ReadAs<uint8_t>(data, values);
    case DType::kUInt16:
      return ReadAs<uint16_t>(data, values);
    case DType::kUInt32:
      return ReadAs<uint32_t>(data, values);
    case DType::kUInt64:
      return ReadAs<uint64_t>(data, values);
    default:
      throw Error(std::string("the host reads no elements of type ") + NameOf(dtype));
  }
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

// A context has an observer until the end of the scope.
class ScopedObserver {
 public:
  ScopedObserver(LaunchContext& context, LaunchObserver* observer) : context_(context) {
    context_.set_observer(observer);
  }
  ~ScopedObserver() { context_.set_observer(nullptr); }
  ScopedObserver(const ScopedObserver&) = delete;
  ScopedObserver& operator=(const ScopedObserver&) = delete;

 private:
  LaunchContext& context_;
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
      arenas_(1 + info.segments.size()),
      symbols_(info.symbols.size()),
      row_symbols_(info.symbols.size()),
      buffers_(info.buffers.size()),
      outputs_(info.outputs.size()),
      tensors_(info.inputs.size() + info.outputs.size()) {
  const int plans = CheckedPlanCacheSize(options);
  copies_before_.reserve(info.inputs.size());
  copies_after_.reserve(info.outputs.size());
  WithHostMemory([&] {
    for (int segment = 0; segment < Segments(); ++segment) {
      plans_.emplace_back(static_cast<size_t>(plans));
    }
    runtime_ = program_.runtime->create(device);
    ActiveDevice active(*runtime_);
    weights_ = LoadWeights(info, embedded_weights, options.weights_file, device, *runtime_);
    if (info.has_random_state) MakeRandomState();
    size_t elements = 0;
    for (int segment = 0; segment < Segments(); ++segment) {
      size_t here = 0;
      for (const ReadInfo& read : Reads(segment)) here += read.symbols;
      elements = std::max(elements, here);
    }
    if (elements > 0 && !runtime_->host_memory()) {
      read_staging_ = runtime_->AllocateHost(elements * kMaxElementBytes, "what the host reads");
    }
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
    std::vector<int64_t> complete = CompleteSymbols(info_, symbols);
    ActiveDevice active(*runtime_);
    if (const int64_t rows = SliceRows(complete); rows > 0) {
      for (const bool host : {false, true}) SlicedOutputs(complete, host);
      int64_t& all = complete[info_.batch_symbol];
      const int64_t rest = all % rows;
      all = rows;
      PlanFor(0, complete, /*for_run=*/true);
      all = rest;
      if (rest > 0) PlanFor(0, complete, /*for_run=*/true);
      return;
    }
    for (int segment = 0; segment < Segments(); ++segment) {
      PlanFor(segment, std::span(complete).first(KnownSymbols(segment)), /*for_run=*/true);
    }
  });
}

int64_t SessionCore::SliceRows(std::span<const int64_t> symbols) {
  if (options_.memory_limit == 0 || info_.batch_symbol < 0) return 0;
  if (std::equal(symbols.begin(), symbols.end(), sliced_symbols_.begin(), sliced_symbols_.end())) {
    return slice_rows_;
  }
  if (plans_[0].Find(symbols) != nullptr) return 0;
  std::vector<int64_t> sizes(symbols.begin(), symbols.end());
  const int64_t all = sizes[info_.batch_symbol];
  const auto wanted = [&](int64_t rows) {
    sizes[info_.batch_symbol] = rows;
    return WorkspaceBytes(0) + static_cast<size_t>(NewPlan(0, sizes).layout.bytes);
  };
  const auto fits = [&](int64_t rows) {
    try {
      return wanted(rows) <= options_.memory_limit;
    } catch (const MemoryError&) {
      return false;  // more than any memory
    }
  };
  if (all <= 1 || fits(all)) return 0;
  const int64_t rows = RowsOfSlice(all, fits);
  if (rows == 0) {
    const size_t one = wanted(1);
    throw PastLimit(sizes, one, "raise it: a batch runs in slices of at least one row");
  }
  // The last slice may have fewer rows, which could pack into more bytes.
  sizes[info_.batch_symbol] = rows;
  ReserveFor(sizes);
  sliced_symbols_.assign(symbols.begin(), symbols.end());
  slice_rows_ = rows;
  return rows;
}

int64_t SessionCore::SliceRowsOf(std::span<const TensorView> inputs) {
  if (options_.memory_limit == 0 || info_.batch_symbol < 0) return 0;
  return SliceRows(Learn(/*segment=*/0, inputs));
}

template <class Action>
void SessionCore::InSlices(int64_t rows, std::span<const TensorView> inputs,
                           std::span<const MutableTensorView> outputs, const Action& run) {
  const int64_t all = symbols_[info_.batch_symbol];
  for (int64_t first = 0; first < all; first += rows) {
    const int64_t count = std::min(rows, all - first);
    run(SliceOf(info_, inputs, all, first, count), SliceOf(outputs, all, first, count));
  }
}

std::vector<MutableTensorView> SessionCore::SlicedOutputs(std::span<const int64_t> symbols,
                                                          bool host) {
  std::vector<Shape> shapes(info_.outputs.size());
  info_.output_shapes(symbols.data(), shapes.data());
  int64_t wanted = 0;
  std::vector<MutableTensorView> outputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = info_.outputs[i].dtype;
    outputs.emplace_back(nullptr, dtype, shapes[i], host ? Memory::kHost : Memory::kDevice);
    wanted += AlignUp(static_cast<int64_t>(BytesOf(dtype, shapes[i])));
  }
  const bool staging = host && !runtime_->host_memory();
  std::unique_ptr<DeviceMemory>& memory = staging ? host_staging_ : sliced_outputs_;
  if (memory == nullptr || memory->bytes() < static_cast<size_t>(wanted)) {
    const auto bytes = static_cast<size_t>(wanted);
    runtime_->Synchronize();
    memory = staging ? runtime_->AllocateHost(bytes, "host outputs")
                     : runtime_->AllocateDevice(bytes, "outputs of a batch in slices");
  }
  std::byte* next = memory->data();
  for (MutableTensorView& output : outputs) {
    output.data = next;
    next += AlignUp(static_cast<int64_t>(BytesOf(output.dtype, output.shape)));
  }
  return outputs;
}

void SessionCore::CheckWholeOutputs(std::span<const TensorView> inputs,
                                    std::span<const MutableTensorView> outputs) const {
  std::vector<Shape> shapes(info_.outputs.size());
  info_.output_shapes(symbols_.data(), shapes.data());
  CheckOutputs(info_, /*segment=*/0, shapes, inputs, outputs);
}

void SessionCore::RunInto(std::span<const TensorView> inputs,
                          std::span<const MutableTensorView> outputs) {
  CheckMemory(inputs);
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  // Copies of the caller's host memory may be under way when something fails: they end first.
  const WaitOnFailure wait(*runtime_);
  if (const int64_t rows = SliceRowsOf(inputs); rows > 0) {
    CheckWholeOutputs(inputs, outputs);
    return InSlices(rows, inputs, outputs,
                    [&](const auto& in, const auto& out) { RunInto(in, out); });
  }
  bool any_host = AnyHost(inputs);
  for (int segment = 0; segment < Segments(); ++segment) {
    Plan& plan = PlanFor(segment, Learn(segment, inputs), /*for_run=*/true);
    CheckOutputs(info_, segment, plan.output_shapes, inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].memory == Memory::kHost) {
        any_host = true;
      } else if (runtime_->host_memory()) {
        throw ArgumentError(std::string("output '") + info_.outputs[i].name +
                            "' is device memory, but " + Where() + " writes host memory");
      }
    }
    SetArenaBuffers(plan);
    if (runtime_->host_memory()) {
      for (size_t i = 0; i < inputs.size(); ++i) buffers_[i] = const_cast<void*>(inputs[i].data);
      for (size_t i = 0; i < outputs.size(); ++i) buffers_[inputs.size() + i] = outputs[i].data;
      RunDirectly(plan);
    } else {
      ExecuteStaged(plan, inputs, outputs);
    }
  }
  if (any_host) runtime_->Synchronize();
}

std::span<const TensorView> SessionCore::RunOwned(std::span<const TensorView> inputs) {
  CheckMemory(inputs);
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  const WaitOnFailure wait(*runtime_);
  const bool host = inputs.empty() || AnyHost(inputs);
  const bool staged = !runtime_->host_memory();
  if (const int64_t rows = SliceRowsOf(inputs); rows > 0) {
    const std::vector<MutableTensorView> whole =
        SlicedOutputs(std::vector<int64_t>(symbols_), host || !staged);
    InSlices(rows, inputs, whole, [&](const auto& in, const auto& out) { RunInto(in, out); });
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i] = TensorView(whole[i].data, whole[i].dtype, whole[i].shape, whole[i].memory);
    }
    return outputs_;
  }
  const Plan* last = nullptr;
  for (int segment = 0; segment < Segments(); ++segment) {
    Plan& plan = PlanFor(segment, Learn(segment, inputs), /*for_run=*/true);
    SetArenaBuffers(plan);
    if (staged) {
      ExecuteStaged(plan, inputs, {});
    } else {
      for (size_t i = 0; i < inputs.size(); ++i) buffers_[i] = const_cast<void*>(inputs[i].data);
      RunDirectly(plan);
    }
    last = &plan;
  }
  int64_t staging_offset = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorInfo& info = info_.outputs[i];
    const Shape& shape = last->output_shapes[i];
    const size_t bytes = BytesOf(info.dtype, shape);
    auto* data = static_cast<std::byte*>(buffers_[inputs.size() + i]);
    if (staged && host && bytes > 0) {
      std::byte* to = host_staging_->data() + staging_offset;
      runtime_->Copy(to, data, bytes, CopyKind::kDeviceToHost);
      copied_bytes_ += bytes;
      data = to;
      staging_offset += AlignUp(static_cast<int64_t>(bytes));
    }
    outputs_[i] = TensorView(data, info.dtype, shape, host ? Memory::kHost : Memory::kDevice);
  }
  if (staged && host) runtime_->Synchronize();
  return outputs_;
}

void SessionCore::EnqueueSteps(std::span<const TensorView> inputs,
                               std::span<const MutableTensorView> outputs) {
  BindSymbols(info_, inputs, symbols_);
  ActiveDevice active(*runtime_);
  const auto take = [&](const char* kind, const TensorInfo& info, Memory memory) {
    if (memory == Memory::kDevice || runtime_->host_memory()) return;
    throw ArgumentError(std::string(kind) + " '" + info.name +
                        "' is host memory, but Enqueue takes device memory; use Run");
  };
  if (const int64_t rows = SliceRowsOf(inputs); rows > 0) {
    CheckWholeOutputs(inputs, outputs);
    return InSlices(rows, inputs, outputs,
                    [&](const auto& in, const auto& out) { EnqueueSteps(in, out); });
  }
  for (int segment = 0; segment < Segments(); ++segment) {
    Plan& plan = PlanFor(segment, Learn(segment, inputs), /*for_run=*/false);
    CheckOutputs(info_, segment, plan.output_shapes, inputs, outputs);
    SetArenaBuffers(plan);
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
}

std::span<const ReadInfo> SessionCore::Reads(int segment) const {
  return segment == 0 ? info_.reads : info_.segments[segment - 1].reads;
}

size_t SessionCore::KnownSymbols(int segment) const {
  size_t known = SizeCount(info_);
  for (int i = 0; i <= segment; ++i) {
    for (const ReadInfo& read : Reads(i)) known += read.symbols;
  }
  return known;
}

std::span<const int64_t> SessionCore::Learn(int segment, std::span<const TensorView> inputs) {
  const std::span<const ReadInfo> reads = Reads(segment);
  // The caller's memory for inputs, which are not where steps find them yet.
  const auto source = [&](const ReadInfo& read) -> const void* {
    return segment == 0 ? inputs[read.buffer].data : buffers_[read.buffer];
  };
  const auto is_here = [&](const ReadInfo& read) {
    return runtime_->host_memory() || (segment == 0 && inputs[read.buffer].memory == Memory::kHost);
  };
  if (segment == 0) LearnRows(info_, inputs, symbols_, row_symbols_);
  size_t offset = 0;
  for (const ReadInfo& read : reads) {
    if (read.total >= 0 || is_here(read)) continue;
    const size_t bytes = read.symbols * SizeOf(read.dtype);
    runtime_->Copy(read_staging_->data() + offset, source(read), bytes, CopyKind::kDeviceToHost);
    offset += read.symbols * kMaxElementBytes;
  }
  if (offset > 0) runtime_->Synchronize();
  offset = 0;
  for (const ReadInfo& read : reads) {
    if (read.total >= 0) continue;
    const std::span<int64_t> values = std::span(symbols_).subspan(read.first_symbol, read.symbols);
    if (is_here(read)) {
      ReadElements(read.dtype, source(read), values);
    } else {
      ReadElements(read.dtype, read_staging_->data() + offset, values);
      offset += read.symbols * kMaxElementBytes;
    }
  }
  return std::span(symbols_).first(KnownSymbols(segment));
}

void SessionCore::ReserveFor(std::span<const int64_t> symbols) {
  std::vector<int64_t> complete = CompleteSymbols(info_, symbols);
  ActiveDevice active(*runtime_);
  if (const int64_t rows = SliceRows(complete); rows > 0) complete[info_.batch_symbol] = rows;
  for (int segment = 0; segment < Segments(); ++segment) {
    Plan plan = NewPlan(segment, std::span(complete).first(KnownSymbols(segment)));
    EnsureArena(plan);
    EnsureHostStaging(plan);
    const auto within = [](const Plan& a, const Reservation& b) {
      return a.segment == b.segment && Within(a.buffer_bytes, b.buffer_bytes);
    };
    if (std::any_of(reservations_.begin(), reservations_.end(),
                    [&](const Reservation& other) { return within(plan, other); })) {
      continue;
    }
    std::erase_if(reservations_, [&](const Reservation& other) {
      return other.segment == segment && Within(other.buffer_bytes, plan.buffer_bytes);
    });
    reservations_.push_back({.segment = segment,
                             .buffer_bytes = std::move(plan.buffer_bytes),
                             .layout = std::move(plan.layout)});
  }
}

void SessionCore::SetProfiling(bool on) {
  if (on && !profiling_) {
    ActiveDevice active(*runtime_);
    for (Plan& plan : plans_[0].plans()) plan.profiled_graph.reset();  // they hold the old timer
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
  const PlanCache& plans = plans_[0];
  if (plans.size() == 0 || plans.plans().front().graph == nullptr) return {};
  return plans.plans().front().graph->KernelNames();
}

MemoryReport SessionCore::memory() const {
  MemoryReport report{.weights = weights_->bytes(),
                      .weights_allocated = weights_->allocated_bytes(),
                      .workspace = runtime_->workspace_bytes(),
                      .host_staging = host_staging_ ? host_staging_->bytes() : 0,
                      .sliced_outputs = sliced_outputs_ ? sliced_outputs_->bytes() : 0,
                      .copied = copied_bytes_,
                      .limit = options_.memory_limit,
                      .slice_rows = slice_rows_};
  if (read_staging_) report.host_staging += read_staging_->bytes();
  for (int segment = 0; segment < Segments(); ++segment) {
    if (arenas_[segment]) report.arena += arenas_[segment]->bytes();
    const PlanCache& plans = plans_[segment];
    report.plans += static_cast<int>(plans.size());
    for (const Plan& plan : plans.plans()) report.graphs += plan.graph != nullptr;
    if (plans.size() == 0) continue;
    const Plan& plan = plans.plans().front();
    report.plan_packed += static_cast<size_t>(plan.layout.bytes);
    for (size_t i = 0; i < plan.buffer_bytes.size(); ++i) {
      if (InArenaOf(segment, i)) report.plan_unpacked += AlignUp(plan.buffer_bytes[i]);
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
         << "  copied        " << report.copied << " (of the last run's inputs and outputs)\n"
         << "  sliced output " << report.sliced_outputs
         << " (rows of a slice: " << report.slice_rows << ")\n"
         << "  plans         " << report.plans << " (captured: " << report.graphs << ")\n";
  for (int segment = 0; segment < Segments(); ++segment) {
    if (plans_[segment].size() == 0) return;
    const Plan& plan = plans_[segment].plans().front();
    size_t unpacked = 0;
    for (size_t i = 0; i < plan.buffer_bytes.size(); ++i) {
      if (InArenaOf(segment, i)) unpacked += AlignUp(plan.buffer_bytes[i]);
    }
    stream << "Plan for " << SymbolsToString(info_, plan.symbols) << ": " << plan.layout.bytes
           << " bytes in the arena, " << unpacked << " without sharing\n"
           << "      offset        bytes  live in steps  buffer\n";
    for (size_t i = 0; i < plan.buffer_bytes.size(); ++i) {
      if (!InArenaOf(segment, i)) continue;
      char text[80];
      std::snprintf(text, sizeof(text), "%12lld %12lld  %6d..%-5d  ",
                    static_cast<long long>(plan.layout.offsets[i]),
                    static_cast<long long>(plan.buffer_bytes[i]), info_.buffers[i].first_step,
                    info_.buffers[i].last_step);
      stream << text << info_.buffers[i].name << "\n";
    }
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

MemoryError SessionCore::PastLimit(std::span<const int64_t> symbols, size_t wanted,
                                   const std::string& advice) const {
  return MemoryError(Where() + ": the arena for " + SymbolsToString(info_, symbols) + " wants " +
                     std::to_string(wanted) + " bytes, but SessionOptions::memory_limit is " +
                     std::to_string(options_.memory_limit) + "; " + advice);
}

std::string SessionCore::WhyNotSliced() const {
  if (info_.batch_refusal[0] == '\0') return "";
  return std::string("; a batch can't run in slices: ") + info_.batch_refusal;
}

bool SessionCore::InArenaOf(int segment, size_t buffer) const {
  return InArena(buffer) && info_.buffers[buffer].segment == segment;
}

size_t SessionCore::WorkspaceBytes(int segment) const {
  return segment == 0 ? runtime_->workspace_bytes() : 0;
}

GraphRecorder* SessionCore::Recorder(int segment) const {
  return segment == 0 && !HasRowOffsets(info_) ? runtime_->graphs() : nullptr;
}

Plan& SessionCore::PlanFor(int segment, std::span<const int64_t> symbols, bool for_run) {
  const bool staged = for_run && !runtime_->host_memory();
  const bool capture = staged && Recorder(segment) != nullptr;
  if (Plan* plan = plans_[segment].Find(symbols)) {
    EnsureArena(*plan);                    // grows only if an earlier growth failed
    if (staged) EnsureHostStaging(*plan);  // likewise
    if (capture && plan->graph == nullptr) plan->graph = Capture(*plan, nullptr);
    return *plan;
  }
  Plan plan = NewPlan(segment, symbols);
  FitIntoReservation(plan);
  EnsureArena(plan);
  if (capture) plan.graph = Capture(plan, nullptr);
  if (staged)
    EnsureHostStaging(plan);  // whichever memory this run uses, the next may use the other
  return plans_[segment].Insert(std::move(plan));
}

Plan SessionCore::NewPlan(int segment, std::span<const int64_t> symbols) const {
  const auto check_bytes = [&](const char* name, int64_t bytes) {
    if (bytes >= 0 && bytes <= kMaxBufferBytes) return;
    throw MemoryError(Where() + ": '" + name + "' for " + SymbolsToString(info_, symbols) +
                      " is larger than any memory; use smaller sizes");
  };
  for (size_t i = 0; i < SizeCount(info_); ++i) {
    if (symbols[i] > kMaxSymbol) check_bytes(info_.symbols[i], -1);
  }
  std::vector<int64_t> input_bytes;
  for (const TensorInfo& input : info_.inputs) {
    const TensorView layout = InputLayout(input, symbols);
    const int64_t elements = ElementsSpanned(layout.shape, layout.strides);
    check_bytes(input.name, elements);
    input_bytes.push_back(static_cast<int64_t>(BytesOf(input.dtype, elements)));
  }

  Plan plan;
  plan.segment = segment;
  plan.symbols.assign(symbols.begin(), symbols.end());
  plan.buffer_bytes.resize(info_.buffers.size());
  plan.output_shapes.resize(info_.outputs.size());
  info_.buffer_bytes(symbols.data(), plan.buffer_bytes.data());
  info_.output_shapes(symbols.data(), plan.output_shapes.data());
  for (const SegmentInfo& later : info_.segments.first(segment)) {
    later.buffer_bytes(symbols.data(), plan.buffer_bytes.data());
    later.output_shapes(symbols.data(), plan.output_shapes.data());
  }

  const size_t inputs = info_.inputs.size();
  std::vector<ArenaRequest> requests(info_.buffers.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const BufferInfo& buffer = info_.buffers[i];
    const int64_t bytes = plan.buffer_bytes[i];
    if (buffer.segment > segment) continue;
    check_bytes(buffer.name, bytes);
    const int64_t elements = bytes / buffer.element_size * buffer.elements_per_byte;
    if (elements > std::numeric_limits<int32_t>::max()) plan.wide = true;
    if (!InArenaOf(segment, i)) continue;
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
    if (info_.buffers[inputs + i].segment > segment) continue;
    CheckGenerated(info_, info_.buffers[inputs + i].name, plan.buffer_bytes[inputs + i],
                   static_cast<int64_t>(BytesOf(info_.outputs[i].dtype, plan.output_shapes[i])));
  }
  plan.layout = PackArena(requests);
  return plan;
}

// Packing is not monotonic: smaller buffers can pack into more bytes. Any buffers also fit where
// the larger ones of a reservation lie.
void SessionCore::FitIntoReservation(Plan& plan) const {
  const auto& arena = arenas_[plan.segment];
  if (arena && plan.layout.bytes + WorkspaceBytes(plan.segment) <= arena->bytes()) return;
  for (const Reservation& reservation : reservations_) {
    if (plan.segment == reservation.segment && plan.layout.bytes > reservation.layout.bytes &&
        Within(plan.buffer_bytes, reservation.buffer_bytes)) {
      plan.layout = reservation.layout;
      return;
    }
  }
}

void SessionCore::EnsureArena(const Plan& plan) {
  const size_t workspace = WorkspaceBytes(plan.segment);
  const size_t wanted = workspace + static_cast<size_t>(plan.layout.bytes);
  std::unique_ptr<DeviceMemory>& arena = arenas_[plan.segment];
  if (wanted <= (arena ? arena->bytes() : 0)) return;
  size_t together = wanted;
  for (int other = 0; other < Segments(); ++other) {
    if (other != plan.segment && arenas_[other]) together += arenas_[other]->bytes();
  }
  if (options_.memory_limit > 0 && together > options_.memory_limit) {
    throw PastLimit(plan.symbols, together, "raise it or use smaller sizes" + WhyNotSliced());
  }
  // Freed before the new one is allocated, so that no more is needed than what is wanted. Graphs
  // hold addresses in the old one.
  runtime_->Synchronize();
  if (plan.segment > 0) {
    arena.reset();
    arena = runtime_->AllocateDevice(wanted, "the arena");
    return;
  }
  std::vector<Plan*> captured;
  for (Plan& other : plans_[0].plans()) {
    if (other.graph != nullptr) captured.push_back(&other);
    other.graph.reset();
    other.profiled_graph.reset();
  }
  arena.reset();
  arena = runtime_->AllocateDevice(wanted, "the arena");
  runtime_->context().set_workspace(arena->data(), workspace);
  if (runtime_->graphs() != nullptr) {
    runtime_->graphs()->context().set_workspace(arena->data(), workspace);
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
      std::unique_ptr<LaunchGraph> graph = recorder.End(info_.outputs.size());
      graph->addresses.assign(buffers_.begin(), buffers_.begin() + tensors_.size());
      return graph;
    } catch (...) {
      const bool invalidated = recorder.Abort();
      if (!invalidated || attempt == kCaptureAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
  }
}

void SessionCore::CallEnqueue(LaunchContext& context, const Plan& plan, StepTimer* timer) {
  context.ResetStep();
  context.set_segment(plan.segment);
  context.set_wide(plan.wide);
  if (timer != nullptr) timer->Begin(context);
  ScopedHook hook(context, timer);
  // The steps take all symbols, those that only later segments use included.
  std::copy(plan.symbols.begin(), plan.symbols.end(), symbols_.begin());
  try {
    program_.enqueue(context, symbols_.data(), buffers_.data(), weights_->data());
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
  GraphRecorder* recorder = Recorder(plan.segment);
  if (recorder != nullptr && profiling_ && plan.profiled_graph == nullptr) {
    plan.profiled_graph = Capture(plan, &profiler_->timer());
  }
  if (plan.segment == 0) copied_bytes_ = 0;
  LaunchGraph* const graph =
      recorder == nullptr ? nullptr : (profiling_ ? plan.profiled_graph : plan.graph).get();
  Place(plan, graph, inputs, outputs);
  if (graph != nullptr) Update(*graph, plan);

  // What is not used in place; by the graph itself where the device can copy it.
  copies_before_.clear();
  copies_after_.clear();
  const auto in_graph = [&](const auto& view, size_t buffer) {
    return graph != nullptr && view.memory == Memory::kDevice &&
           Reaches(tensors_[buffer], view.data);
  };
  const auto is_copied = [&](const auto& view, size_t buffer) {
    return plan.buffer_bytes[buffer] > 0 && buffers_[buffer] != view.data;
  };
  for (size_t i = 0; i < inputs.size() && plan.segment == 0; ++i) {
    if (!is_copied(inputs[i], i)) continue;
    const auto bytes = static_cast<size_t>(plan.buffer_bytes[i]);
    copied_bytes_ += bytes;
    if (in_graph(inputs[i], i)) {
      copies_before_.push_back({.to = buffers_[i], .from = inputs[i].data, .bytes = bytes});
    } else {
      runtime_->Copy(
          buffers_[i], inputs[i].data, bytes,
          inputs[i].memory == Memory::kHost ? CopyKind::kHostToDevice : CopyKind::kDeviceToDevice);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t buffer = inputs.size() + i;
    if (!InArenaOf(plan.segment, buffer) || !is_copied(outputs[i], buffer)) continue;
    const auto bytes = static_cast<size_t>(plan.buffer_bytes[buffer]);
    copied_bytes_ += bytes;
    if (!in_graph(outputs[i], buffer)) continue;
    copies_after_.push_back({.to = outputs[i].data, .from = buffers_[buffer], .bytes = bytes});
  }
  if (graph == nullptr) {
    RunDirectly(plan);
  } else {
    recorder->Launch(*graph, copies_before_, copies_after_);
    if (profiling_) profiler_->Collect(plan.symbols);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t buffer = inputs.size() + i;
    if (!InArenaOf(plan.segment, buffer) || !is_copied(outputs[i], buffer) ||
        in_graph(outputs[i], buffer)) {
      continue;
    }
    runtime_->Copy(
        outputs[i].data, buffers_[buffer], static_cast<size_t>(plan.buffer_bytes[buffer]),
        outputs[i].memory == Memory::kHost ? CopyKind::kDeviceToHost : CopyKind::kDeviceToDevice);
  }
}

void SessionCore::Place(const Plan& plan, const LaunchGraph* graph,
                        std::span<const TensorView> inputs,
                        std::span<const MutableTensorView> outputs) {
  const auto for_each = [&](const auto& action) {
    for (size_t i = 0; i < inputs.size() && plan.segment == 0; ++i) {
      action(i, const_cast<void*>(inputs[i].data), inputs[i].memory);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t buffer = inputs.size() + i;
      if (InArenaOf(plan.segment, buffer)) action(buffer, outputs[i].data, outputs[i].memory);
    }
  };
  size_t new_bytes = 0;
  for_each([&](size_t buffer, void* data, Memory memory) {
    CallerTensor& tensor = tensors_[buffer];
    tensor.is_new = tensor.data != data;
    const bool can = !tensor.library_operand && CanBeInPlace(plan, buffer, data, memory);
    buffers_[buffer] = can ? data : ArenaAddress(plan, buffer);
    if (can && tensor.is_new) new_bytes += static_cast<size_t>(plan.buffer_bytes[buffer]);
  });
  if (graph == nullptr || new_bytes >= kBytesWorthAnUpdate) return;
  for_each([&](size_t buffer, void* data, Memory) {
    const bool in_graph = !graph->addresses.empty() && graph->addresses[buffer] == data;
    if (tensors_[buffer].is_new && !in_graph) buffers_[buffer] = ArenaAddress(plan, buffer);
  });
}

bool SessionCore::CanBeInPlace(const Plan& plan, size_t buffer, void* data, Memory memory) {
  const int64_t bytes = plan.buffer_bytes[buffer];
  if (bytes == 0 || memory != Memory::kDevice || !Reaches(tensors_[buffer], data) ||
      reinterpret_cast<uintptr_t>(data) % kInPlaceAlignment != 0) {
    return false;
  }
  // Steps may write the arena, where an input is if it is an earlier run's output, before they read
  // it.
  auto* const begin = static_cast<std::byte*>(data);
  return std::none_of(arenas_.begin(), arenas_.end(), [&](const auto& arena) {
    return arena != nullptr && std::less<>()(begin, arena->data() + arena->bytes()) &&
           std::less<>()(arena->data(), begin + bytes);
  });
}

void SessionCore::Update(LaunchGraph& graph, const Plan& plan) {
  const auto given = std::span(buffers_).first(tensors_.size());
  while (!std::equal(given.begin(), given.end(), graph.addresses.begin(), graph.addresses.end())) {
    graph.addresses.clear();
    graph.BeginUpdate();
    {
      LaunchContext& context = runtime_->graphs()->context();
      const ScopedObserver observer(context, &graph);
      CallEnqueue(context, plan, nullptr);
    }
    const std::span<const void* const> operands = graph.EndUpdate();
    graph.addresses.assign(given.begin(), given.end());
    for (size_t i = 0; i < given.size(); ++i) {
      auto* const home = ArenaAddress(plan, i);
      const auto* const begin = static_cast<const std::byte*>(given[i]);
      if (begin == home || plan.buffer_bytes[i] == 0) continue;
      const auto is_here = [&](const void* operand) {
        const auto* const at = static_cast<const std::byte*>(operand);
        return !std::less<>()(at, begin) && std::less<>()(at, begin + plan.buffer_bytes[i]);
      };
      if (!std::any_of(operands.begin(), operands.end(), is_here)) continue;
      tensors_[i].library_operand = true;
      given[i] = home;
    }
  }
}

bool SessionCore::Reaches(CallerTensor& tensor, const void* data) {
  if (tensor.data != data) {
    tensor.data = data;
    tensor.reaches = runtime_->Reaches(data);
  }
  return tensor.reaches;
}

void SessionCore::SetArenaBuffers(const Plan& plan) {
  if (plan.segment == 0) std::fill(buffers_.begin(), buffers_.end(), nullptr);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (info_.buffers[i].segment != plan.segment) continue;
    buffers_[i] = InArena(i) ? ArenaAddress(plan, i) : nullptr;
  }
}

std::byte* SessionCore::ArenaAddress(const Plan& plan, size_t buffer) const {
  const auto& arena = arenas_[plan.segment];
  if (arena == nullptr) return nullptr;
  return arena->data() + WorkspaceBytes(plan.segment) + plan.layout.offsets[buffer];
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
