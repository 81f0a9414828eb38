"""The macro that makes one set of GoogleTest sources a test of every backend."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load(":backends.bzl", "backend_defines")
load(":gpu_test.bzl", "gpu_test")

def backend_test(
        name,
        srcs,
        deps = [],
        env = {},
        local_defines = [],
        size = None,
        tags = [],
        visibility = None,
        **kwargs):
    """Tests the CPU backends in `<name>` and CUDA in `<name>_gpu`, from the same sources.

    The sources are compiled with SOFIE_WITH_CPU=1 and the like for the backends in the build. Which
    backends to test the environment variable SOFIE_TEST_BACKENDS says.

    Args:
      name: name of the CPU test.
      srcs: sources, as in cc_test.
      deps: dependencies, as in cc_test.
      env: environment of both tests.
      local_defines: defines for the sources.
      size: of both tests.
      tags: of both tests.
      visibility: of both tests.
      **kwargs: further attributes of the cc_test.
    """
    cc_test(
        name = name,
        srcs = srcs,
        env = {"SOFIE_TEST_BACKENDS": "cpu,openmp"} | env,
        local_defines = backend_defines() + local_defines,
        size = size,
        tags = tags,
        visibility = visibility,
        deps = deps,
        **kwargs
    )
    gpu_test(
        name = name + "_gpu",
        env = {"SOFIE_TEST_BACKENDS": "cuda"},
        size = size,
        tags = tags,
        test = name,
        visibility = visibility,
    )
