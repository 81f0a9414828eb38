"""Where actions run on a remote-execution service: names and values of the execution properties.

The names are those that BuildBuddy, EngFlow, Buildbarn and BuildGrid know. A service with others is
served by a platform of one's own, whose parent is `//platforms:executor`.
"""

# The machine that actions run on, except where a target says otherwise. The image supplies the C++
# compiler, the C library and Python, and nothing else: Debian 12 with GCC 12.2, glibc 2.36 and
# Python 3.11. What //platforms:executor_cc_toolchain and --config=remote say has to fit it.
EXECUTOR_PROPERTIES = {
    "OSFamily": "linux",
    # Named also where it is the default: a worker with a GPU is then asked for nothing else.
    "Pool": "default",
    "container-image": "docker://docker.io/library/buildpack-deps:bookworm",
}

# Only the run of a GPU test needs a GPU; it is compiled where everything is compiled.
GPU_TEST_PROPERTIES = {"test.Pool": "gpu"}

def gpu_arch_properties(arch):
    """Returns the properties of a test that needs a GPU of an architecture.

    Args:
      arch: string, such as "sm_90".
    """
    return {"test.gpu-arch": arch}
