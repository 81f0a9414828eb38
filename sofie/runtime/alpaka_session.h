// Runs a model from code that is itself alpaka code: on the caller's queue and the caller's memory,
// without a copy, a graph or a synchronisation.
//
// The header generated for a model names AlpakaSession with its own Inputs and OutputBuffers, for
// which it declares, in the model's namespace,
//   std::unique_ptr<sofie::SessionCore> NewSessionFor(const Inputs*, const sofie::Device&,
//                                                     const sofie::SessionOptions&);
//   std::array<sofie::TensorView, …> TensorViews(const Inputs&);
//   std::array<sofie::MutableTensorView, …> TensorViews(const OutputBuffers&);
#ifndef SOFIE_RUNTIME_ALPAKA_SESSION_H_
#define SOFIE_RUNTIME_ALPAKA_SESSION_H_

#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "sofie/runtime/alpaka/version.h"
#include "sofie/runtime/device.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/view.h"

namespace sofie {

// True for queues of a CPU: their work is C++ calls.
template <class TQueue>
inline constexpr bool kIsCpuQueue = std::is_same_v<::alpaka::Dev<TQueue>, ::alpaka::DevCpu>;

// The device that a session on this queue runs on: the CUDA stream behind it, or the CPU.
template <class TQueue>
Device DeviceOf(const TQueue& queue) {
  if constexpr (kIsCpuQueue<TQueue>) {
    return Device::Cpu();
  } else {
    return Device::Cuda(static_cast<int>(::alpaka::getNativeHandle(::alpaka::getDev(queue))),
                        static_cast<void*>(::alpaka::getNativeHandle(queue)));
  }
}

// A model on an alpaka queue. One thread at a time. Memory of the views' data is that of the
// queue's device, whatever their member `memory` says. It has to stay until the work is done.
template <class TQueue, class Inputs, class OutputBuffers>
class AlpakaSession {
 public:
  // On a CPU queue `device` may be Device::OpenMp(); by default it is what the queue says. Throws
  // what SessionCore's constructor throws.
  explicit AlpakaSession(const TQueue& queue, const SessionOptions& options = {})
      : AlpakaSession(queue, DeviceOf(queue), options) {}
  AlpakaSession(const TQueue& queue, const Device& device, const SessionOptions& options = {})
      : state_(std::make_shared<State>(
            queue, NewSessionFor(static_cast<const Inputs*>(nullptr), Matching(device), options))) {
  }

  // Puts the model into the queue, behind what is there, and returns. Errors in the sizes are
  // thrown at once, except on a non-blocking CPU queue: there the work, and with it every check, is
  // done by the queue's thread, and what it throws is thrown by the next call of Run or Check.
  void Run(TQueue& queue, const Inputs& inputs, const OutputBuffers& outputs) {
    if (!(queue == state_->queue)) {
      throw ArgumentError(
          "AlpakaSession::Run: the queue is not the one that the session was made with; make a "
          "session for each queue");
    }
    Check();
    auto in = TensorViews(inputs);
    auto out = TensorViews(outputs);
    constexpr Memory kMemory = kIsCpuQueue<TQueue> ? Memory::kHost : Memory::kDevice;
    for (TensorView& view : in) view.memory = kMemory;
    for (MutableTensorView& view : out) view.memory = kMemory;
    if constexpr (!kIsCpuQueue<TQueue>) {
      state_->core->Enqueue(in, out);
    } else {
      ::alpaka::enqueue(queue, [state = state_, in, out] {
        try {
          state->core->Enqueue(in, out);
        } catch (...) {
          const std::lock_guard lock(state->mutex);
          if (state->error == nullptr) state->error = std::current_exception();
        }
      });
      if constexpr (std::is_same_v<TQueue, ::alpaka::QueueCpuBlocking>) Check();
    }
  }

  // Throws what a Run threw in the queue's thread, once.
  void Check() {
    std::exception_ptr error;
    {
      const std::lock_guard lock(state_->mutex);
      std::swap(error, state_->error);
    }
    if (error != nullptr) std::rethrow_exception(error);
  }

  // For Reserve, Prepare, profile and memory report, while no work of the session is in the queue.
  SessionCore& core() { return *state_->core; }

 private:
  static const Device& Matching(const Device& device) {
    if ((device.backend() == Backend::kCuda) != kIsCpuQueue<TQueue>) return device;
    throw ArgumentError("AlpakaSession: " + device.ToString() +
                        " is not the device of the queue; leave the device out");
  }

  // What work that waits in the queue needs.
  struct State {
    State(const TQueue& queue, std::unique_ptr<SessionCore> core)
        : queue(queue), core(std::move(core)) {}
    TQueue queue;
    std::unique_ptr<SessionCore> core;
    std::mutex mutex;
    std::exception_ptr error;
  };

  std::shared_ptr<State> state_;
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_ALPAKA_SESSION_H_
