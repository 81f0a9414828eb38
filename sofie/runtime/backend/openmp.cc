// The "openmp" backend: threads of the host.
#include <omp.h>

#include "sofie/runtime/backend/host_runtime.h"

namespace sofie {

constinit const BackendFactory kOpenMpBackend = {
    .backend = Backend::kOpenMp,
    .create =
        [](const Device& device) {
          const int threads = device.threads() > 0 ? device.threads() : omp_get_max_threads();
          return NewHostRuntime(Backend::kOpenMp, threads);
        },
};

}  // namespace sofie
