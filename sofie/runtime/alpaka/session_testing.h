// What the generated headers of a model declare for AlpakaSession, for the hand-written test model.
#ifndef SOFIE_RUNTIME_ALPAKA_SESSION_TESTING_H_
#define SOFIE_RUNTIME_ALPAKA_SESSION_TESTING_H_

#include <array>
#include <memory>

#include "sofie/runtime/alpaka_session.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/test_model.h"

namespace sofie::test_model {

struct Inputs {
  View<const float> points;
  View<const float> mask;
};
struct OutputBuffers {
  View<float> copied;
  View<float> mask_copy;
  View<float> tags;
};

inline std::array<TensorView, 2> TensorViews(const Inputs& inputs) {
  return {inputs.points, inputs.mask};
}
inline std::array<MutableTensorView, 3> TensorViews(const OutputBuffers& outputs) {
  return {outputs.copied, outputs.mask_copy, outputs.tags};
}

// Each test defines it for its backends.
std::unique_ptr<SessionCore> NewSessionFor(const Inputs*, const Device& device,
                                           const SessionOptions& options);

template <class TQueue>
using TestSession = AlpakaSession<TQueue, Inputs, OutputBuffers>;

}  // namespace sofie::test_model

#endif  // SOFIE_RUNTIME_ALPAKA_SESSION_TESTING_H_
