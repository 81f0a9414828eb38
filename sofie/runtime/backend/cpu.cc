// The "cpu" backend: one thread of the host.
#include "sofie/runtime/backend/host_runtime.h"

namespace sofie {

constinit const BackendFactory kCpuBackend = {
    .backend = Backend::kCpu,
    .create = [](const Device&) { return NewHostRuntime(Backend::kCpu, 1); },
};

}  // namespace sofie
