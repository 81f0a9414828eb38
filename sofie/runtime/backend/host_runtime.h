// The runtime of the backends whose kernels run on the host: memory is the host's, and every launch
// is complete when it returns.
#ifndef SOFIE_RUNTIME_BACKEND_HOST_RUNTIME_H_
#define SOFIE_RUNTIME_BACKEND_HOST_RUNTIME_H_

#include <memory>

#include "sofie/runtime/backend.h"

namespace sofie {

// `threads` is what LaunchContext::threads() tells the steps.
std::unique_ptr<BackendRuntime> NewHostRuntime(Backend backend, int threads);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_BACKEND_HOST_RUNTIME_H_
