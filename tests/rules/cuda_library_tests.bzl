"""Tests of cuda_library and of the options it makes."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("@rules_cc//cc:defs.bzl", "CcInfo", "cc_library")
load("//rules:defs.bzl", "cuda_library")
load("//rules/cuda:gencode.bzl", "gencode_options")

_BACKENDS = str(Label("//sofie:backends"))
_ARCHS = str(Label("//rules/cuda:archs"))
_WARNINGS_AS_ERRORS = str(Label("//rules/cuda:warnings_as_errors"))
_CUDA = {_BACKENDS: ["cpu", "cuda"]}

def _compilations(env):
    return [
        action
        for action in analysistest.target_actions(env)
        if action.mnemonic == "CudaCompile"
    ]

def _gencode_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(
        env,
        [
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90,code=sm_90",
            "-gencode=arch=compute_90,code=compute_90",
        ],
        gencode_options(["sm_90", "sm_80", "sm_90"], "test"),
    )

    # Order is by number, not by letter.
    asserts.equals(
        env,
        "-gencode=arch=compute_100,code=compute_100",
        gencode_options(["sm_100", "sm_90"], "test")[-1],
    )

    # Code for one architecture only has no PTX, also beside others.
    asserts.equals(
        env,
        ["-gencode=arch=compute_90a,code=sm_90a"],
        gencode_options(["sm_90a"], "test"),
    )
    asserts.equals(
        env,
        [
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90a,code=sm_90a",
            "-gencode=arch=compute_80,code=compute_80",
        ],
        gencode_options(["sm_90a", "sm_80"], "test"),
    )
    return unittest.end(env)

_gencode_test = unittest.make(_gencode_test_impl)

def _actions_test_impl(ctx):
    env = analysistest.begin(ctx)
    compilations = _compilations(env)
    asserts.equals(env, 2, len(compilations), "one action per source")

    folders = {}
    for action in compilations:
        [output] = action.outputs.to_list()
        folders[output.dirname] = True
        argv = action.argv
        asserts.true(env, "-objtemp" in argv, "temporary files beside the object")
        seeds = [option for option in argv if option.startswith("--frandom-seed=")]
        asserts.equals(env, 1, len(seeds))
        asserts.false(env, "bazel-out" in seeds[0], "the seed is the same in every configuration")
        for option in [
            "-std=c++20",
            "--expt-relaxed-constexpr",
            "--extended-lambda",
            "--Werror=cross-execution-space-call",
            "-Xcompiler=-fPIC",
            "-DFROM_DEPENDENCY=1",
            "-DOWN=1",
            "-DLOCAL=1",
            "--ptxas-options=-v",
            "-Xcompiler=-Wl\\,x",
        ]:
            asserts.true(env, option in argv, "{} in {}".format(option, argv))
        asserts.true(
            env,
            [option for option in argv if option.startswith("-ccbin=/")],
            "the host compiler is that of the C++ toolchain",
        )
    asserts.equals(env, 2, len(folders), "each object has a folder of its own")
    return analysistest.end(env)

_actions_test = analysistest.make(_actions_test_impl, config_settings = _CUDA)

def _include_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = _compilations(env)[0].argv
    system = [argv[i + 1] for i in range(len(argv) - 1) if argv[i] == "-isystem"]
    ordinary = [argv[i + 1] for i in range(len(argv) - 1) if argv[i] == "-I"]
    asserts.true(env, "." in ordinary, "own headers are found from the workspace root")
    asserts.true(
        env,
        [path for path in system if "alpaka" in path],
        "headers of other repositories are system headers",
    )
    asserts.false(env, [path for path in ordinary if "external/" in path])
    return analysistest.end(env)

_include_test = analysistest.make(_include_test_impl, config_settings = _CUDA)

def _providers_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    linker_inputs = target[CcInfo].linking_context.linker_inputs.to_list()
    own = [
        library
        for linker_input in linker_inputs
        if linker_input.owner == target.label
        for library in linker_input.libraries
    ]
    asserts.equals(env, 1, len(own))

    # Which of the two a link takes depends on the compilation mode.
    objects = [file.basename for file in own[0].pic_objects or own[0].objects]
    asserts.equals(env, ["first.pic.o", "second.pic.o"], sorted(objects))
    archives = [
        library.static_library or library.pic_static_library
        for linker_input in linker_inputs
        for library in linker_input.libraries
    ]
    asserts.true(
        env,
        "libcudart_static.a" in [archive.basename for archive in archives],
        "the CUDA runtime is linked",
    )
    asserts.true(env, "OWN=1" in target[CcInfo].compilation_context.defines.to_list())
    asserts.false(env, "LOCAL=1" in target[CcInfo].compilation_context.defines.to_list())
    headers = [header.basename for header in target[CcInfo].compilation_context.headers.to_list()]
    asserts.true(env, "kernels.h" in headers)
    asserts.equals(env, 1, len(target[OutputGroupInfo]._validation.to_list()))
    return analysistest.end(env)

_providers_test = analysistest.make(_providers_test_impl, config_settings = _CUDA)

def _lint_test_impl(ctx):
    env = analysistest.begin(ctx)
    [lint] = [
        action
        for action in analysistest.target_actions(env)
        if action.mnemonic == "CudaLint"
    ]
    names = [file.basename for file in lint.inputs.to_list()]
    for name in ["first.cu", "second.cu", "kernels.h", "dependency.h"]:
        asserts.true(env, name in names, name + " is checked")
    asserts.false(env, "alpaka.hpp" in names, "headers of others are not")
    return analysistest.end(env)

_lint_test = analysistest.make(_lint_test_impl, config_settings = _CUDA)

def _gencode_of_target_test_impl(ctx):
    env = analysistest.begin(ctx)
    options = [
        option.removeprefix("-gencode=")
        for option in _compilations(env)[0].argv
        if option.startswith("-gencode=")
    ]
    asserts.equals(env, ctx.attr.expected, options)
    return analysistest.end(env)

_GENCODE_ATTRS = {"expected": attr.string_list()}

_two_archs_test = analysistest.make(
    _gencode_of_target_test_impl,
    attrs = _GENCODE_ATTRS,
    config_settings = _CUDA | {_ARCHS: ["sm_80", "sm_90"]},
)
_one_arch_test = analysistest.make(
    _gencode_of_target_test_impl,
    attrs = _GENCODE_ATTRS,
    config_settings = _CUDA | {_ARCHS: ["sm_90"]},
)

def _warnings_test_impl(ctx):
    env = analysistest.begin(ctx)
    for option in ["--Werror=all-warnings", "-Xcompiler=-Werror"]:
        asserts.equals(
            env,
            ctx.attr.errors,
            option in _compilations(env)[0].argv,
        )
    return analysistest.end(env)

_warnings_test = analysistest.make(
    _warnings_test_impl,
    attrs = {"errors": attr.bool(default = False)},
    config_settings = _CUDA | {_WARNINGS_AS_ERRORS: False},
)
_warnings_as_errors_test = analysistest.make(
    _warnings_test_impl,
    attrs = {"errors": attr.bool(default = True)},
    config_settings = _CUDA | {_WARNINGS_AS_ERRORS: True},
)

def _failure_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_test_impl,
    attrs = {"message": attr.string(mandatory = True)},
    config_settings = _CUDA,
    expect_failure = True,
)

def cuda_library_test_suite(name):
    """Defines the tests.

    Args:
      name: name of the suite.
    """
    subject = name + "_subject"
    parts = {"tags": ["manual"], "testonly": True}
    cc_library(
        name = name + "_dependency",
        hdrs = ["testdata/dependency.h"],
        defines = ["FROM_DEPENDENCY=1"],
        **parts
    )
    cuda_library(
        name = subject,
        srcs = ["testdata/first.cu", "testdata/second.cu"],
        textual_hdrs = ["testdata/launch.h"],
        hdrs = ["testdata/kernels.h"],
        copts = ["--ptxas-options=-v"],
        defines = ["OWN=1"],
        host_copts = ["-Wl,x"],
        local_defines = ["LOCAL=1"],
        deps = [name + "_dependency", "//third_party:alpaka"],
        **parts
    )
    cuda_library(
        name = name + "_one_architecture",
        srcs = ["testdata/first.cu"],
        archs = ["sm_90a"],
        **parts
    )
    cuda_library(
        name = name + "_bad_architecture",
        srcs = ["testdata/first.cu"],
        archs = ["hopper"],
        **parts
    )
    tests = {
        "actions": (_actions_test, {}),
        "include": (_include_test, {}),
        "providers": (_providers_test, {}),
        "lint": (_lint_test, {}),
        "warnings": (_warnings_test, {}),
        "warnings_as_errors": (_warnings_as_errors_test, {}),
        "two_archs": (_two_archs_test, {"expected": [
            "arch=compute_80,code=sm_80",
            "arch=compute_90,code=sm_90",
            "arch=compute_90,code=compute_90",
        ]}),
        "one_arch": (_one_arch_test, {"expected": [
            "arch=compute_90,code=sm_90",
            "arch=compute_90,code=compute_90",
        ]}),
        "archs_attribute": (_two_archs_test, {
            "expected": ["arch=compute_90a,code=sm_90a"],
            "target_under_test": name + "_one_architecture",
        }),
        "bad_arch": (_failure_test, {
            "message": "'hopper' is not a GPU architecture. Write it as sm_80",
            "target_under_test": name + "_bad_architecture",
        }),
    }
    names = []
    for case, (test, attributes) in tests.items():
        names.append("{}_{}_test".format(name, case))
        test(name = names[-1], size = "small", **({"target_under_test": subject} | attributes))
    _gencode_test(name = name + "_gencode_test", size = "small")
    native.test_suite(name = name, tests = names + [name + "_gencode_test"])
