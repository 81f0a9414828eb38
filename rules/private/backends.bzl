"""The names of the backends, and what depends on which of them a build contains."""

# In the order in which lists of backends are written.
BACKENDS = ["cpu", "openmp", "cuda"]

# What a build contains that names none.
DEFAULT_BACKENDS = ["cpu", "openmp"]

def if_backend(backend, value, otherwise = []):
    """Returns a select: `value` where the build contains `backend`, else `otherwise`."""
    return select({
        str(Label("//sofie:with_" + backend)): value,
        "//conditions:default": otherwise,
    })

def backend_defines():
    """Tells C++ which backends are in the build.

    Returns:
      A select: a list of SOFIE_WITH_CPU=1 and the like.
    """
    defines = []
    for backend in BACKENDS:
        defines += if_backend(backend, ["SOFIE_WITH_{}=1".format(backend.upper())])
    return defines

_BACKENDS_SETTING = "//sofie:backends"

def _with_cuda_impl(settings, _attributes):
    backends = settings[_BACKENDS_SETTING] + ["cuda"]
    return {_BACKENDS_SETTING: [name for name in BACKENDS if name in backends]}

with_cuda = transition(
    implementation = _with_cuda_impl,
    inputs = [_BACKENDS_SETTING],
    outputs = [_BACKENDS_SETTING],
)

# For what does not depend on them, so that it is made once.
with_default_backends = transition(
    implementation = lambda _settings, _attributes: {_BACKENDS_SETTING: DEFAULT_BACKENDS},
    inputs = [],
    outputs = [_BACKENDS_SETTING],
)
