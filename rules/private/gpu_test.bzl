"""The rule that runs a whole test in a configuration whose backend is CUDA."""

load("@bazel_skylib//lib:shell.bzl", "shell")
load("//platforms:properties.bzl", "GPU_TEST_PROPERTIES", "gpu_arch_properties")

_BACKENDS_SETTING = "//sofie:backends"

# `resources:gpu:1` counts against --local_resources=gpu=N: no more tests than GPUs run at a time, and
# gpu_lock.sh gives each its own.
GPU_TEST_TAGS = ["gpu", "manual", "requires-gpu-nvidia", "resources:gpu:1"]

_LAUNCHER = """\
#!/bin/sh
# Runs {label}, built with the CUDA backend.
runfiles=${{RUNFILES_DIR:-${{TEST_SRCDIR:-$0.runfiles}}}}
exec "$runfiles/"{lock} "$runfiles/"{path} {arguments} "$@"
"""

_ArgumentsInfo = provider(
    doc = "The arguments that a test is run with.",
    fields = {"arguments": "list of string: the attribute `args`, with its labels expanded."},
)

def _arguments_impl(_target, ctx):
    attributes = ctx.rule.attr
    labels = [
        target
        for name in ("srcs", "data", "deps")
        for target in getattr(attributes, name, [])
    ]
    return [_ArgumentsInfo(arguments = [
        ctx.expand_make_variables("args", ctx.expand_location(argument, labels), {})
        for argument in getattr(attributes, "args", [])
    ])]

_arguments_aspect = aspect(
    implementation = _arguments_impl,
    doc = "Reads the arguments of a test, which no provider of the test tells.",
)

# All of the test is moved, itself included: a mixture of configurations in one binary would have
# everything twice. CUDA alone: the other backends' code would be compiled once more for nothing.
_cuda_alone = transition(
    implementation = lambda _settings, _attributes: {_BACKENDS_SETTING: ["cuda"]},
    inputs = [],
    outputs = [_BACKENDS_SETTING],
)

def _runfiles_path(ctx, file):
    path = file.short_path
    return path[3:] if path.startswith("../") else ctx.workspace_name + "/" + path

def _gpu_test_impl(ctx):
    test = ctx.attr.test
    executable = ctx.executable.test
    arguments = [
        token
        for argument in test[_ArgumentsInfo].arguments
        for token in ctx.tokenize(argument)
    ]
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        output = launcher,
        content = _LAUNCHER.format(
            label = test.label,
            lock = shell.quote(_runfiles_path(ctx, ctx.file._lock)),
            path = shell.quote(_runfiles_path(ctx, executable)),
            arguments = " ".join([shell.quote(argument) for argument in arguments]),
        ),
        is_executable = True,
    )

    environment = {}
    inherited = []
    if RunEnvironmentInfo in test:
        environment.update(test[RunEnvironmentInfo].environment)
        inherited = test[RunEnvironmentInfo].inherited_environment
    environment.update(ctx.attr.env)
    return [
        DefaultInfo(
            executable = launcher,
            # The binary too, so that what depends on this target compiles it.
            files = depset([launcher, executable]),
            runfiles = ctx.runfiles([executable, ctx.file._lock]).merge(test[DefaultInfo].default_runfiles),
        ),
        RunEnvironmentInfo(environment = environment, inherited_environment = inherited),
    ]

_gpu_test = rule(
    implementation = _gpu_test_impl,
    attrs = {
        "test": attr.label(
            doc = "The test, or another executable, to run.",
            aspects = [_arguments_aspect],
            executable = True,
            cfg = "target",
            mandatory = True,
        ),
        "env": attr.string_dict(doc = "Environment variables beside those of the test."),
        "_lock": attr.label(default = "//rules/private:gpu_lock.sh", allow_single_file = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    cfg = _cuda_alone,
    doc = "Runs a whole test with the CUDA backend; use it through the macro `gpu_test`.",
    test = True,
)

def gpu_test(name, test, arch = None, tags = [], exec_properties = {}, **kwargs):
    """Runs a test, C++ or Python, on the GPU, built with the CUDA backend.

    No flag is needed: for the test and all that it is made of `--//sofie:backends` is `cuda` alone.
    Where there is no GPU the test fails. Runfiles, environment and arguments of the test are
    kept. The target is `manual`, so that `//...` does not run it; list it in a `gpu_suite`.

    Args:
      name: name of the target.
      test: label of the test, or of another executable.
      arch: the GPU architecture that the test needs, such as "sm_90", if it can't do with another:
        a remote-execution service is asked for it.
      tags: tags beside those of every GPU test.
      exec_properties: where to run; only the test itself needs a machine with a GPU.
      **kwargs: further attributes of a test: size, timeout, args (added to the test's own), env …
    """
    _gpu_test(
        name = name,
        test = test,
        testonly = True,
        tags = GPU_TEST_TAGS + [tag for tag in tags if tag not in GPU_TEST_TAGS],
        exec_properties = GPU_TEST_PROPERTIES |
                          (gpu_arch_properties(arch) if arch else {}) |
                          exec_properties,
        **kwargs
    )

def gpu_suite(name, tests, visibility = None):
    """Makes a suite of GPU tests that is run by its name only, and compiled with everything.

    Args:
      name: name of the suite. `<name>_build` builds what it runs and is part of `//...`.
      tests: labels of gpu_test targets.
      visibility: of both targets.
    """
    if not tests:
        fail("gpu_suite '{}' lists no test: a suite without a list would pass empty.".format(name))
    native.test_suite(
        name = name,
        tests = tests,
        tags = ["manual"],
        visibility = visibility,
    )
    native.filegroup(
        name = name + "_build",
        testonly = True,
        srcs = tests,
        visibility = visibility,
    )
