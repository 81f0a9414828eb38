// A model on a device, with types and names erased. The header generated for each model wraps it in
// a typed Session.
#ifndef SOFIE_RUNTIME_SESSION_H_
#define SOFIE_RUNTIME_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/device.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/memory_report.h"
#include "sofie/runtime/model_info.h"
#include "sofie/runtime/plan_cache.h"
#include "sofie/runtime/profiler.h"
#include "sofie/runtime/view.h"
#include "sofie/runtime/weights.h"

namespace sofie {

struct SessionOptions {
  // File with the weights; "" for those embedded in the program.
  std::string weights_file = {};
  // The most bytes that the arena may have, 0 for no limit. Weights are not counted. A batch that
  // wants more runs in slices if its rows do not meet (ModelInfo::batch_symbol); outputs that the
  // session owns are then kept beside the arena. Otherwise it is a MemoryError.
  size_t memory_limit = 0;
  // Sets of sizes whose plans are kept. At least 1.
  int plan_cache_size = 16;
  // What random numbers of nodes without a seed depend on, and the number of the session's run:
  // sessions with equal seeds draw equal numbers, on all backends up to rounding.
  uint64_t random_seed = 0;
  // Times every step; see SessionCore::SetProfiling.
  bool profile = false;
};

// One thread at a time per session; sessions, also of one model, run concurrently.
//
// What the methods throw is a sofie::Error. It leaves the session usable, except that after a
// DeviceError which says so the process has to be restarted.
//
// On CUDA, new sizes are captured as a graph by Run, Prepare and Reserve. CUDA does not allow that
// other threads of the program wait for the whole device meanwhile (cudaDeviceSynchronize): wait
// for streams instead.
//
// A set of sizes that is new to the session costs a plan (and on CUDA a graph capture) and may grow
// the arena. A Run at sizes that are among the `plan_cache_size` used last, or prepared, allocates
// nothing on host or device.
class SessionCore {
 public:
  // `info`, what it points to and the embedded weights outlive the session. Throws BackendError if
  // `programs` lacks the device's backend or the machine lacks the device, WeightsError,
  // MemoryError, ArgumentError for options out of range.
  SessionCore(const ModelInfo& info, std::span<const BackendProgram> programs,
              std::span<const std::byte> embedded_weights, const Device& device,
              const SessionOptions& options = {});
  ~SessionCore();
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  // Runs the model on its inputs, in the order of info().inputs, and writes the caller's outputs,
  // whose shapes must be what these inputs give. All are packed and row-major, but for inputs that
  // may have strides.
  //
  // On CUDA any view may be host or device memory. If all are device memory, the work is put into
  // the stream and the call returns; if any is host memory, it returns when the work is done. On a
  // CPU backend the call always returns when the work is done and takes host memory only.
  void Run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);

  // The same with outputs that the session owns. They hold until the next call of Run, Enqueue,
  // Reserve or Prepare. Host memory if there are no inputs or any is host memory, else device
  // memory.
  std::span<const TensorView> Run(std::span<const TensorView> inputs);

  // Puts the steps straight into the device's stream, on the caller's own device pointers: no copy,
  // no graph, no synchronisation, unless the model's sizes depend on data or the arena has to grow,
  // which waits for the stream: Reserve first. For code that itself works on that stream. On a CPU
  // backend the work is done on return.
  void Enqueue(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);

  // Sizes the arena for these values of the symbols and all below. No later Run, Enqueue or Prepare
  // within them grows it, in a model whose buffers do not shrink as a symbol grows (a slice's stop
  // at n - 5 of 100 elements would be such).
  void Reserve(std::span<const int64_t> symbols);
  // Does all that the first Run at these sizes would do, except the computation.
  void Prepare(std::span<const int64_t> symbols);

  const ModelInfo& info() const { return info_; }
  const Device& device() const { return device_; }

  // While on, every run is timed step by step, which makes it longer, and waits for its end.
  // Switching on starts a new profile; switching off keeps it.
  void SetProfiling(bool on);
  // Empty if profiling was never on. Holds until the next call of this session.
  const Profile& profile();
  void PrintProfile(std::ostream& stream);

  // The device's names, mangled, of the kernels in the graph of the plan used last, in no certain
  // order, those of libraries left out. Empty before the first run and on a CPU backend.
  std::vector<std::string> GraphKernels() const;

  MemoryReport memory() const;
  void PrintMemory(std::ostream& stream) const;

  // Waits for all work in the session's stream.
  void Synchronize();

 private:
  // `action()`; throws MemoryError instead of std::bad_alloc.
  template <class Action>
  decltype(auto) WithHostMemory(const Action& action) const;
  // The public methods of these names.
  void RunInto(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);
  std::span<const TensorView> RunOwned(std::span<const TensorView> inputs);
  void EnqueueSteps(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);
  void ReserveFor(std::span<const int64_t> symbols);

  // Rows of the slices in which a batch runs because it does not fit into the memory limit, 0 where
  // it runs whole. Throws MemoryError where not even one row fits.
  int64_t SliceRows(std::span<const int64_t> symbols);
  // The same for the batch of these inputs, whose sizes are in symbols_.
  int64_t SliceRowsOf(std::span<const TensorView> inputs);
  void CheckWholeOutputs(std::span<const TensorView> inputs,
                         std::span<const MutableTensorView> outputs) const;
  // `run(inputs, outputs)` for each slice, in order. `symbols_` are those of the whole batch.
  template <class Action>
  void InSlices(int64_t rows, std::span<const TensorView> inputs,
                std::span<const MutableTensorView> outputs, const Action& run);
  // Outputs of the whole batch that the session owns, in host memory or where steps write.
  std::vector<MutableTensorView> SlicedOutputs(std::span<const int64_t> symbols, bool host);

  // A segment's whole arena for some sizes; see Reserve.
  struct Reservation {
    int segment = 0;
    std::vector<int64_t> buffer_bytes;
    ArenaLayout layout;
  };
  // What the session knows of an input or output that callers have in the device's memory.
  struct CallerTensor {
    const void* data = nullptr;
    bool reaches = false;  // BackendRuntime::Reaches(data)
    bool is_new = false;   // in this run
    // A library is given its address, which then can't change in a graph.
    bool library_operand = false;
  };

  // The steps between two moments at which the host waits for what they computed; the first segment
  // is what most models have alone. Each has buffers in an arena of its own, so that one can grow
  // while what earlier ones computed stays where it is.
  int Segments() const { return static_cast<int>(arenas_.size()); }
  std::span<const ReadInfo> Reads(int segment) const;
  // Number of symbols that are known when the segment begins.
  size_t KnownSymbols(int segment) const;
  // Reads what a segment needs and gives its symbols; waits for the device if that has computed it.
  std::span<const int64_t> Learn(int segment, std::span<const TensorView> inputs);

  // Inputs of a CPU session are read where the caller has them; all else lies in the arenas.
  bool InArena(size_t buffer) const;
  bool InArenaOf(int segment, size_t buffer) const;
  size_t WorkspaceBytes(int segment) const;
  // What records the graph of a segment's plans; null where they are launched step by step:
  // because the backend has no graphs, or because the sizes are rarely the same twice.
  GraphRecorder* Recorder(int segment) const;
  // "model 'particle_net' on cuda:0", to begin messages with.
  std::string Where() const;
  // The error of an arena that passes SessionOptions::memory_limit.
  MemoryError PastLimit(std::span<const int64_t> symbols, size_t wanted,
                        const std::string& advice) const;
  // "; a batch can't run in slices: …", to end messages with; "" where it could, or nobody knows.
  std::string WhyNotSliced() const;
  void MakeRandomState();
  void CheckMemory(std::span<const TensorView> inputs) const;
  // The plan of a segment at these sizes, made if need be; ready for Run, with a graph if the
  // backend has them, or for Enqueue. Segments after the first have no graphs, and neither have
  // models whose rows have sizes of their own: what they depend on may be other at every run.
  Plan& PlanFor(int segment, std::span<const int64_t> symbols, bool for_run);
  Plan NewPlan(int segment, std::span<const int64_t> symbols) const;
  void FitIntoReservation(Plan& plan) const;
  void EnsureArena(const Plan& plan);
  void EnsureHostStaging(const Plan& plan);
  std::unique_ptr<LaunchGraph> Capture(const Plan& plan, StepTimer* timer);
  // Points buffers_ into the plan's arena.
  void SetArenaBuffers(const Plan& plan);
  std::byte* ArenaAddress(const Plan& plan, size_t buffer) const;
  // Calls the generated code with buffers_ and names the step that failed.
  void CallEnqueue(LaunchContext& context, const Plan& plan, StepTimer* timer);
  // The same in the caller-visible queue, profiled if that is on.
  void RunDirectly(const Plan& plan);
  // Runs on device memory: on the caller's where that can be used in place; else it copies inputs
  // into the arena first, and the segment's outputs, if any, out of it.
  void ExecuteStaged(Plan& plan, std::span<const TensorView> inputs,
                     std::span<const MutableTensorView> outputs);
  // Points buffers_ of inputs and outputs to views whose memory steps are to use in place, else
  // into the arena.
  void Place(const Plan& plan, const LaunchGraph* graph, std::span<const TensorView> inputs,
             std::span<const MutableTensorView> outputs);
  bool CanBeInPlace(const Plan& plan, size_t buffer, void* data, Memory memory);
  // Gives a graph the addresses of inputs and outputs in buffers_, of which those that it can't
  // have become the arena's.
  void Update(LaunchGraph& graph, const Plan& plan);
  // BackendRuntime::Reaches, asked only if `data` is not what is known.
  bool Reaches(CallerTensor& tensor, const void* data);

  const ModelInfo& info_;
  BackendProgram program_;
  Device device_;
  SessionOptions options_;
  std::unique_ptr<BackendRuntime> runtime_;
  std::shared_ptr<const Weights> weights_;
  std::unique_ptr<DeviceMemory> random_state_;         // null if nothing random lacks a seed
  std::vector<std::unique_ptr<DeviceMemory>> arenas_;  // of segments: the workspace first, buffers
  std::unique_ptr<DeviceMemory> host_staging_;         // outputs one after another
  std::unique_ptr<DeviceMemory> sliced_outputs_;       // likewise, of batches in slices
  std::unique_ptr<DeviceMemory> read_staging_;         // what a segment reads, likewise
  std::vector<Reservation> reservations_;
  std::unique_ptr<Profiler> profiler_;
  std::deque<PlanCache> plans_;  // of segments
  bool profiling_ = false;
  // The batch that was cut last: its symbols, and the rows of a slice.
  std::vector<int64_t> sliced_symbols_;
  int64_t slice_rows_ = 0;
  // Scratch of one run, sized once.
  std::vector<int64_t> symbols_;
  std::vector<int64_t> row_symbols_;
  std::vector<void*> buffers_;
  std::vector<TensorView> outputs_;
  std::vector<DeviceCopy> copies_before_;  // of a graph's launch
  std::vector<DeviceCopy> copies_after_;
  std::vector<CallerTensor> tensors_;  // inputs, then outputs
  size_t copied_bytes_ = 0;            // see MemoryReport
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_SESSION_H_
