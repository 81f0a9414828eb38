"""The macro that tests an ONNX model against the reference."""

load(":backend_test.bzl", "backend_test")
load(":onnx_cc_library.bzl", "onnx_cc_library")
load(":onnx_references.bzl", "onnx_references")

def onnx_model_test(
        name,
        model,
        cases,
        library = None,
        namespace = None,
        model_data = [],
        library_options = {},
        tolerance = "",
        deps = [],
        tags = [],
        **kwargs):
    """Runs an ONNX model at several sizes and compares the outputs with the reference.

    `<name>` tests the CPU backends and `<name>_gpu`, a gpu_test, CUDA. On each backend one session
    runs all cases in shuffled order, so that sizes shrink and grow. Expected outputs are computed
    at build time by ONNX Runtime or ONNX's reference evaluator; tolerances come with them (see
    models/reference.py).

    Args:
      name: name of the test.
      model: the ONNX file.
      cases: list of the extents of the model's symbols, such as ["N=1,n_pf=100", "N=0,n_pf=17"].
      library: the onnx_cc_library of that model; by default the test makes one.
      namespace: C++ namespace of `library`, if it is not the name of it.
      model_data: files beside the model that hold tensors stored outside of it.
      library_options: further attributes of the onnx_cc_library that the test makes, whose `shards`
        are 1 by default.
      tolerance: largest relative error of float32 outputs, such as "1e-3"; by default that of float32
        arithmetic.
      deps: as in cc_test.
      tags: of both tests.
      **kwargs: attributes of both tests: size, visibility.
    """
    if not library:
        library = name + "_model"
        onnx_cc_library(
            name = library,
            testonly = True,
            model = model,
            model_data = model_data,
            namespace = namespace,
            tags = ["manual"],
            visibility = ["//visibility:private"],
            # Reading headers is most of the time that a small model's source takes.
            **({"shards": 1} | library_options)
        )
    elif library_options:
        fail("onnx_model_test '{}': library_options are for the library that the test makes.".format(
            name,
        ))
    onnx_references(
        name = name + "_cases",
        testonly = True,
        cases = cases,
        model = model,
        model_data = model_data,
        tags = ["manual"],
        tolerance = tolerance,
        visibility = ["//visibility:private"],
    )
    label = native.package_relative_label(library)
    header = "/".join([part for part in [label.package, label.name + ".h"] if part])
    backend_test(
        name = name,
        srcs = [str(Label("//rules/private:onnx_model_test.cc"))],
        args = ["$(rootpaths :{}_cases)".format(name)],
        copts = ["-std=c++20"],
        data = [name + "_cases"],
        local_defines = [
            'SOFIE_MODEL_HEADER=\\"{}\\"'.format(header),
            "SOFIE_MODEL_NAMESPACE=" + (namespace or label.name),
        ],
        tags = tags,
        deps = deps + [
            library,
            str(Label("//rules/private:model_cases")),
            str(Label("@googletest//:gtest")),
        ],
        **kwargs
    )
