// The models of a conformance program. The sources that the runner writes register them.
#ifndef TESTS_CONFORMANCE_REGISTRY_H_
#define TESTS_CONFORMANCE_REGISTRY_H_

#include <memory>

#include "sofie/runtime/device.h"
#include "sofie/runtime/model_info.h"
#include "sofie/runtime/session.h"

namespace sofie::conformance {

struct Model {
  const char* name;
  const ModelInfo& (*info)();
  std::unique_ptr<SessionCore> (*new_session)(const Device&, const SessionOptions&);
};

// An object of this type with static storage makes a model known.
struct Registration {
  explicit Registration(const Model& model);
};

}  // namespace sofie::conformance

#endif  // TESTS_CONFORMANCE_REGISTRY_H_
