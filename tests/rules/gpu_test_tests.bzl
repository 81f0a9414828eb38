"""Tests of gpu_test, gpu_suite and backend_test."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//rules:defs.bzl", "backend_test", "gpu_suite", "gpu_test")
load("//sofie:backends.bzl", "BackendsInfo")

def _probe_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(script, "#!/bin/sh\n", is_executable = True)
    return [
        DefaultInfo(executable = script, runfiles = ctx.runfiles(ctx.files.data)),
        RunEnvironmentInfo(
            environment = {
                "BACKENDS": ",".join(ctx.attr._backends[BackendsInfo].backends),
                "KEPT": "kept",
                "OVERRIDDEN": "by the test",
            },
            inherited_environment = ["HOME"],
        ),
    ]

# A test that tells by its environment in which configuration it is.
probe_test = rule(
    implementation = _probe_test_impl,
    attrs = {
        "data": attr.label_list(allow_files = True),
        "_backends": attr.label(default = "//sofie:backends"),
    },
    test = True,
)

def _environment_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[RunEnvironmentInfo]
    asserts.equals(env, ctx.attr.backends, info.environment["BACKENDS"])
    asserts.equals(env, "kept", info.environment["KEPT"])
    asserts.equals(env, "by the GPU test", info.environment["OVERRIDDEN"])
    asserts.equals(env, ["HOME"], info.inherited_environment)
    return analysistest.end(env)

_ENVIRONMENT_ATTRS = {"backends": attr.string()}
_BACKENDS = str(Label("//sofie:backends"))

_adds_cuda_test = analysistest.make(
    _environment_test_impl,
    attrs = _ENVIRONMENT_ATTRS,
    config_settings = {_BACKENDS: ["cpu"]},
)
_keeps_cuda_test = analysistest.make(
    _environment_test_impl,
    attrs = _ENVIRONMENT_ATTRS,
    config_settings = {_BACKENDS: ["cuda", "openmp"]},
)

def _launcher_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    [launcher] = [
        action
        for action in analysistest.target_actions(env)
        if action.mnemonic == "FileWrite"
    ]
    asserts.true(
        env,
        ("tests/rules/{}' 'tests/rules/testdata/kernels.h' 'two words' '$HOME' \"$@\"".format(
            ctx.attr.probe,
        )) in launcher.content,
        launcher.content,
    )
    runfiles = [
        file.short_path
        for file in target[DefaultInfo].default_runfiles.files.to_list()
    ]
    asserts.true(env, "tests/rules/testdata/kernels.h" in runfiles, "runfiles of the test")
    asserts.true(env, "tests/rules/" + ctx.attr.probe in runfiles, "the test itself")
    lock = "rules/private/gpu_lock.sh"
    asserts.true(env, lock in runfiles, "the lock of the GPU")
    asserts.true(env, "/{}' \"$runfiles/\"".format(lock) in launcher.content, launcher.content)
    built = [file.basename for file in target[DefaultInfo].files.to_list()]
    asserts.true(env, ctx.attr.probe in built, "building the target builds the test")
    return analysistest.end(env)

_launcher_test = analysistest.make(_launcher_test_impl, attrs = {"probe": attr.string()})

def _attributes_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ctx.attr.expected, ctx.attr.actual)
    return unittest.end(env)

_attributes_test = unittest.make(
    _attributes_test_impl,
    attrs = {
        "actual": attr.string_list(),
        "expected": attr.string_list(),
    },
)

def gpu_test_test_suite(name):
    """Defines the tests.

    Args:
      name: name of the suite.
    """
    probe = name + "_probe_test"
    probe_test(
        name = probe,
        args = ["$(rootpath testdata/kernels.h) 'two words'", "'$$HOME'"],
        data = ["testdata/kernels.h"],
        tags = ["manual"],
    )
    gpu_test(
        name = name + "_subject_test",
        size = "small",
        env = {"OVERRIDDEN": "by the GPU test"},
        tags = ["exclusive"],
        test = probe,
    )
    gpu_test(
        name = name + "_arch_subject_test",
        size = "small",
        arch = "sm_90",
        test = probe,
    )
    gpu_suite(
        name = name + "_suite",
        tests = [name + "_subject_test"],
    )
    backend_test(
        name = name + "_both_test",
        srcs = ["kernels_test.cc"],
        tags = ["manual"],
        deps = ["@googletest//:gtest_main"],
    )
    subject = native.existing_rule(name + "_subject_test")
    arch = native.existing_rule(name + "_arch_subject_test")
    suite = native.existing_rule(name + "_suite")
    both = native.existing_rule(name + "_both_test")

    tests = []

    def expect(case, actual, expected):
        tests.append("{}_{}_test".format(name, case))
        _attributes_test(name = tests[-1], size = "small", actual = actual, expected = expected)

    expect(
        "tags",
        sorted(subject["tags"]),
        ["exclusive", "gpu", "manual", "requires-gpu-nvidia", "resources:gpu:1"],
    )
    expect("pool", subject["exec_properties"].items()[0], ["test.Pool", "gpu"])
    expect(
        "arch",
        ["{}={}".format(key, value) for key, value in sorted(arch["exec_properties"].items())],
        ["test.Pool=gpu", "test.gpu-arch=sm_90"],
    )
    expect("suite_is_manual", suite["tags"], ["manual"])
    expect("suite_has_a_list", suite["tests"], [":" + name + "_subject_test"])
    expect(
        "suite_is_compiled",
        native.existing_rule(name + "_suite_build")["tags"],
        [],
    )
    expect(
        "cpu_backends",
        [both["env"]["SOFIE_TEST_BACKENDS"]],
        ["cpu,openmp"],
    )
    expect(
        "cuda_backend",
        [native.existing_rule(name + "_both_test_gpu")["env"]["SOFIE_TEST_BACKENDS"]],
        ["cuda"],
    )
    for case, (test, attributes) in {
        "adds_cuda": (_adds_cuda_test, {"backends": "cuda"}),
        "keeps_cuda": (_keeps_cuda_test, {"backends": "cuda"}),
        "launcher": (_launcher_test, {"probe": probe}),
    }.items():
        tests.append("{}_{}_test".format(name, case))
        test(
            name = tests[-1],
            size = "small",
            target_under_test = name + "_subject_test",
            **attributes
        )
    native.test_suite(name = name, tests = tests)
