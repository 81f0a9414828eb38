"""The macro that makes a C++ library of an ONNX model."""

load("@rules_cc//cc:defs.bzl", "CcInfo", "cc_library")
load("//rules/cuda:cuda_library.bzl", "cuda_library")
load(":backends.bzl", "BACKENDS", "backend_defines", "if_backend")
load(":embed_data.bzl", "embed_data")
load(":onnx_cc_generate.bzl", "onnx_cc_generate")
load(":onnx_model_info.bzl", "OnnxModelInfo")

_COPTS = ["-std=c++20"]

# Loops over elements are written for the vectoriser, in every compilation mode. It may assume what
# the code does: look neither at errno nor at floating-point traps. No result depends on that.
_KERNEL_COPTS = _COPTS + ["-O3", "-fno-math-errno", "-fno-trapping-math"]

def _runtime(name):
    return str(Label("//sofie/runtime" + name))

def _onnx_cc_model_impl(ctx):
    generated = ctx.attr.generated
    groups = generated[OutputGroupInfo]
    library = ctx.attr.library
    return [
        DefaultInfo(
            files = depset(transitive = [
                target[DefaultInfo].files
                for target in [library] + ctx.attr.parts
            ]),
            runfiles = library[DefaultInfo].default_runfiles,
        ),
        library[CcInfo],
        generated[OnnxModelInfo],
        OutputGroupInfo(
            kernels = groups.kernels_header,
            manifest = groups.manifest,
            sources = groups.sources,
            weights = groups.weights,
        ),
    ]

_onnx_cc_model = rule(
    implementation = _onnx_cc_model_impl,
    attrs = {
        "generated": attr.label(mandatory = True, providers = [OnnxModelInfo]),
        "library": attr.label(mandatory = True, providers = [CcInfo]),
        "parts": attr.label_list(
            doc = "What else is built with the target: the library's dependencies of this model.",
            providers = [CcInfo],
        ),
    },
    doc = "The library of a model, together with what the generator made.",
    provides = [CcInfo, OnnxModelInfo],
)

def onnx_cc_library(
        name,
        model,
        namespace = None,
        precision = "fp32",
        weights = "embedded",
        low_rank = "",
        strided_inputs = [],
        ragged = [],
        shards = 2,
        model_data = [],
        visibility = None,
        tags = [],
        **kwargs):
    """Makes a C++ library of an ONNX model.

    Depend on the target and write `#include "<package>/<name>.h"`; code that is itself alpaka code
    includes `<package>/<name>_alpaka.h`. Which backends it contains, `--@sofie//sofie:backends` says.

    The target has CcInfo, OnnxModelInfo and the output groups `kernels`, `manifest`, `sources` and
    `weights`. Beside it there is `<name>_kernels`, a library for code that schedules the model's
    kernels itself: the header `<package>/<name>_kernels.h` alone.

    Args:
      name: name of the target, of the header and, unless `namespace` is given, of the namespace.
      model: the ONNX file.
      namespace: C++ namespace, one identifier.
      precision: of products of float32 matrices on a GPU: "fp32", "tf32", "bf16" or "fp16". CPUs
        always compute in float32, and so does a GPU what TopK selects from.
      weights: "embedded" in the program, or "file": `<package>/<name>_weights.safetensors` is among the
        runfiles, and a session is told its path by SessionOptions::weights_file.
      low_rank: makes two products of each product with a constant matrix, which is approximated by
        one of a lower rank, where that saves operations. "error=1e-3": of the lowest rank whose
        relative error, in the root of the sum of squares, is at most that. "ratio=0.5": of the
        highest rank with at most that share of the operations. The manifest says what became of
        which matrix.
      strided_inputs: inputs, by the names they have in the model, whose views may have strides: what
        is transposed, padded, sliced or repeated is read in place. Other inputs are packed.
      ragged: sizes, by the names they have in the model, that are other ones in each row of a batch. Inputs
        with such a size have the points of all rows one after the other, [points, channels] in place
        of [rows, channels, points], and offsets say where each row begins.
      shards: number of source files per backend. Each is one compilation; they run in parallel.
      model_data: files beside the model that hold tensors stored outside of it.
      visibility: of the target.
      tags: of all targets.
      **kwargs: attributes of all targets, such as testonly.
    """
    generated = name + "_generated"
    onnx_cc_generate(
        name = generated,
        library_name = name,
        low_rank = low_rank,
        model = model,
        model_data = model_data,
        namespace = namespace or name,
        precision = precision,
        shards = shards,
        strided_inputs = strided_inputs,
        ragged = ragged,
        tags = tags,
        visibility = ["//visibility:private"],
        weights = weights,
        **kwargs
    )

    # Parts are built where the library needs them, and not by `//...` for backends that are not in
    # the build.
    part = {
        "tags": tags + ["manual"],
        "visibility": ["//visibility:private"],
    } | kwargs

    def files(group):
        target = "{}_{}".format(name, group)
        native.filegroup(
            name = target,
            srcs = [generated],
            output_group = group,
            **part
        )
        return [target]

    kernels = name + "_kernels"
    cc_library(
        name = kernels,
        hdrs = files("kernels_header"),
        deps = [_runtime("/kernels:launcher")],
        **(part | {"visibility": visibility})
    )
    step_headers = files("step_headers")
    cc_library(
        name = name + "_cpu",
        srcs = files("cpu_sources") + step_headers,
        copts = _KERNEL_COPTS,
        deps = [
            kernels,
            _runtime("/kernels:cpu"),
        ],
        **part
    )
    cc_library(
        name = name + "_openmp",
        srcs = files("openmp_sources") + step_headers,
        copts = _KERNEL_COPTS + ["-fopenmp"],
        linkopts = ["-fopenmp"],
        deps = [
            kernels,
            _runtime("/kernels:openmp"),
        ],
        **part
    )
    cuda_library(
        name = name + "_cuda",
        srcs = files("cuda_sources"),
        textual_hdrs = step_headers,
        deps = [
            kernels,
            _runtime("/kernels:cuda"),
        ],
        **part
    )

    weights_object = []
    if weights == "embedded":
        weights_object = [name + "_weights_object"]
        embed_data(
            name = weights_object[0],
            data = files("weights")[0],
            symbol = (namespace or name) + "_weights",
            **part
        )

    backend_parts = []
    backend_deps = []
    for backend in BACKENDS:
        backend_parts += if_backend(backend, ["{}_{}".format(name, backend)])
        backend_deps += if_backend(backend, [_runtime("/backend:" + backend)])
    cc_library(
        name = name + "_library",
        srcs = files("session_source") + step_headers,
        hdrs = files("public_headers"),
        copts = _COPTS,
        data = files("weights") if weights == "file" else [],
        local_defines = backend_defines(),
        deps = [
            _runtime(":session"),
            _runtime(":alpaka_session"),
        ] + backend_parts + backend_deps + weights_object,
        **part
    )
    _onnx_cc_model(
        name = name,
        generated = generated,
        library = name + "_library",
        parts = backend_parts + weights_object,
        tags = tags,
        visibility = visibility,
        **kwargs
    )
