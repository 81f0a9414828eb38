"""Tests of onnx_cc_library, of the rules it is made of, and of the reference files."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load("//rules:defs.bzl", "OnnxModelInfo", "onnx_cc_library")
load("//rules/private:embed_data.bzl", "embed_data")  # buildifier: disable=bzl-visibility
load("//rules/private:onnx_references.bzl", "onnx_references")  # buildifier: disable=bzl-visibility

_BACKENDS = str(Label("//sofie:backends"))

def _action(env, mnemonic):
    [action] = [
        action
        for action in analysistest.target_actions(env)
        if action.mnemonic == mnemonic
    ]
    return action

def _names(files):
    return sorted([file.basename for file in files.to_list()])

def _generate_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = _action(env, "OnnxGenerate")
    asserts.equals(
        env,
        [
            "--verbosity=-1",
            "--model=models/mlp.onnx",
            "--name=subject",
            "--namespace=tested",
            "--include_prefix=tests/rules",
            "--shards=3",
            "--precision=fp32",
            "--weights=embedded",
        ],
        [
            argument
            for argument in action.argv[1:]
            if not argument.startswith("--output_dir=") and
               not argument.startswith("--compiler_macros=")
        ],
    )
    asserts.equals(
        env,
        "Haswell 1",
        action.env["OPENBLAS_CORETYPE"] + " " + action.env["OPENBLAS_NUM_THREADS"],
        "decompositions of matrices have the same bits everywhere",
    )
    asserts.true(env, "compiler_macros.h" in [file.basename for file in action.inputs.to_list()])
    [directory] = [
        argument.removeprefix("--output_dir=")
        for argument in action.argv
        if argument.startswith("--output_dir=")
    ]
    outputs = action.outputs.to_list()
    for output in outputs:
        asserts.equals(env, directory, output.dirname)
    shards = []
    for i in range(3):
        for suffix in [".h", "_cpu.cc", "_openmp.cc", "_cuda.cu"]:
            shards.append("subject_steps_{}{}".format(i, suffix))
    asserts.equals(
        env,
        sorted([
            "subject.h",
            "subject_alpaka.h",
            "subject_kernels.h",
            "subject_manifest.json",
            "subject_session.cc",
            "subject_steps.h",
            "subject_weights.safetensors",
        ] + shards),
        sorted([output.basename for output in outputs]),
    )
    return analysistest.end(env)

_generate_test = analysistest.make(_generate_test_impl)

def _flags_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = _action(env, "OnnxGenerate")
    for flag in ctx.attr.expected:
        asserts.true(env, flag in action.argv, "{} in {}".format(flag, action.argv))
    return analysistest.end(env)

_flags_test = analysistest.make(
    _flags_test_impl,
    attrs = {"expected": attr.string_list(mandatory = True)},
)

def _providers_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[OnnxModelInfo]
    asserts.equals(env, "subject", info.name)
    asserts.equals(env, "tested", info.cpp_namespace)
    asserts.equals(env, "mlp.onnx", info.model.basename)
    asserts.equals(env, "subject_manifest.json", info.manifest.basename)
    asserts.equals(env, "subject_weights.safetensors", info.weights.basename)
    asserts.equals(env, "embedded", info.weights_mode)
    asserts.equals(env, "fp32", info.precision)

    groups = target[OutputGroupInfo]
    asserts.equals(env, ["subject_kernels.h"], _names(groups.kernels))
    asserts.equals(env, ["subject_manifest.json"], _names(groups.manifest))
    asserts.equals(env, ["subject_weights.safetensors"], _names(groups.weights))
    sources = _names(groups.sources)
    asserts.true(env, "subject.h" in sources and "subject_steps_2_cuda.cu" in sources)

    headers = [
        header.short_path
        for header in target[CcInfo].compilation_context.direct_public_headers
    ]
    asserts.equals(
        env,
        ["tests/rules/subject.h", "tests/rules/subject_alpaka.h"],
        sorted(headers),
        "the header is included by package and name",
    )
    return analysistest.end(env)

_providers_test = analysistest.make(_providers_test_impl)

def _linked(target):
    """Names of the libraries of this package that the target links."""
    return sorted([
        linker_input.owner.name
        for linker_input in target[CcInfo].linking_context.linker_inputs.to_list()
        if linker_input.owner.package == "tests/rules" and linker_input.libraries
    ])

def _linked_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, ctx.attr.expected, _linked(target))
    runfiles = target[DefaultInfo].default_runfiles.files.to_list()
    for part in ctx.attr.expected:
        asserts.true(
            env,
            [
                file
                for file in target[DefaultInfo].files.to_list()
                if part in [file.basename.removeprefix("lib").removesuffix(".a"), file.dirname.rpartition("/")[2]]
            ],
            "{} is built with the target".format(part),
        )
    weights = [file.short_path for file in runfiles if file.basename.endswith("_weights.safetensors")]
    asserts.equals(env, ctx.attr.weights, weights)
    return analysistest.end(env)

_LINKED_ATTRS = {
    "weights": attr.string_list(),
    "expected": attr.string_list(mandatory = True),
}

_cpu_test = analysistest.make(
    _linked_test_impl,
    attrs = _LINKED_ATTRS,
    config_settings = {_BACKENDS: ["cpu"]},
)
_hosts_test = analysistest.make(
    _linked_test_impl,
    attrs = _LINKED_ATTRS,
    config_settings = {_BACKENDS: ["cpu", "openmp"]},
)
_cuda_test = analysistest.make(
    _linked_test_impl,
    attrs = _LINKED_ATTRS,
    config_settings = {_BACKENDS: ["cuda"]},
)

def _defines_test_impl(ctx):
    env = analysistest.begin(ctx)
    defines = [
        option
        for action in analysistest.target_actions(env)
        if action.mnemonic == "CppCompile"
        for option in action.argv
        if option.startswith("-DSOFIE_WITH_")
    ]
    asserts.equals(
        env,
        ["-DSOFIE_WITH_CPU=1", "-DSOFIE_WITH_CUDA=1"],
        sorted({define: True for define in defines}.keys()),
    )
    return analysistest.end(env)

_defines_test = analysistest.make(
    _defines_test_impl,
    config_settings = {_BACKENDS: ["cpu", "cuda"]},
)

def _embed_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = _action(env, "EmbedData").argv
    for option in [
        "--rename-section=.data=.rodata.some_symbol,alloc,load,readonly,data,contents",
        "--set-section-alignment=.data=64",
        "--redefine-sym=_binary_tests_rules_testdata_kernels_h_start=some_symbol_start",
        "--redefine-sym=_binary_tests_rules_testdata_kernels_h_end=some_symbol_end",
        "--add-section=.note.GNU-stack=/dev/null",
    ]:
        asserts.true(env, option in argv, "{} in {}".format(option, argv))
    return analysistest.end(env)

_embed_test = analysistest.make(_embed_test_impl)

def _references_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = _action(env, "OnnxReference")
    asserts.equals(
        env,
        ["--case=N=1", "--case=x/y:0=2"],
        [argument for argument in action.argv if argument.startswith("--case=")],
    )
    asserts.equals(
        env,
        ["N=1.npz", "x_y_0=2.npz"],
        sorted([output.basename for output in action.outputs.to_list()]),
    )
    return analysistest.end(env)

_references_test = analysistest.make(_references_test_impl)

def _failure_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_test_impl,
    attrs = {"message": attr.string(mandatory = True)},
    expect_failure = True,
)

def onnx_cc_library_test_suite(name):
    """Defines the tests.

    Args:
      name: name of the suite.
    """
    parts = {"model": "//models:mlp.onnx", "tags": ["manual"]}
    onnx_cc_library(
        name = "subject",
        namespace = "tested",
        shards = 3,
        **parts
    )
    onnx_cc_library(
        name = "subject_with_file",
        weights = "file",
        **parts
    )
    onnx_cc_library(
        name = "subject_with_options",
        low_rank = "error=1e-3",
        precision = "tf32",
        strided_inputs = ["features"],
        **parts
    )
    onnx_cc_library(
        name = "subject_without_shards",
        shards = 0,
        **parts
    )
    onnx_cc_library(
        name = "subject_with_bad_namespace",
        namespace = "a::b",
        **parts
    )
    embed_data(
        name = "subject_data",
        alignment = 64,
        data = "testdata/kernels.h",
        symbol = "some_symbol",
        tags = ["manual"],
    )
    onnx_references(
        name = "subject_cases",
        cases = ["N=1", "x/y:0=2"],
        **parts
    )
    own = ["subject_library", "subject_weights_object"]
    tests = []
    for case, (test, attributes) in {
        "generate": (_generate_test, {"target_under_test": "subject_generated"}),
        "options": (_flags_test, {
            "expected": [
                "--low_rank=error=1e-3",
                "--precision=tf32",
                "--strided_input=features",
            ],
            "target_under_test": "subject_with_options_generated",
        }),
        "providers": (_providers_test, {"target_under_test": "subject"}),
        "links_cpu": (_cpu_test, {
            "expected": sorted(own + ["subject_cpu"]),
            "target_under_test": "subject",
        }),
        "links_hosts": (_hosts_test, {
            "expected": sorted(own + ["subject_cpu", "subject_openmp"]),
            "target_under_test": "subject",
        }),
        "links_cuda": (_cuda_test, {
            "expected": sorted(own + ["subject_cuda"]),
            "target_under_test": "subject",
        }),
        "weights_in_a_file": (_cpu_test, {
            "weights": ["tests/rules/subject_with_file_weights.safetensors"],
            "expected": ["subject_with_file_cpu", "subject_with_file_library"],
            "target_under_test": "subject_with_file",
        }),
        "defines": (_defines_test, {"target_under_test": "subject_library"}),
        "embed": (_embed_test, {"target_under_test": "subject_data"}),
        "references": (_references_test, {"target_under_test": "subject_cases"}),
        "no_shards": (_failure_test, {
            "message": "shards = 0: at least one source shard is needed.",
            "target_under_test": "subject_without_shards_generated",
        }),
        "bad_namespace": (_failure_test, {
            "message": "namespace = 'a::b' is not a C++ identifier.",
            "target_under_test": "subject_with_bad_namespace_generated",
        }),
    }.items():
        tests.append("{}_{}_test".format(name, case))
        test(name = tests[-1], size = "small", **attributes)
    native.test_suite(name = name, tests = tests)
