"""The rule that runs the generator on an ONNX model."""

load(":backends.bzl", "BACKENDS")
load(":onnx_model_info.bzl", "OnnxModelInfo")

PRECISIONS = ["fp32", "tf32", "bf16", "fp16"]
WEIGHTS_MODES = ["embedded", "file"]

_SOURCE_SUFFIXES = {
    "cpu": "_cpu.cc",
    "cuda": "_cuda.cu",
    "openmp": "_openmp.cc",
}

def _check_identifier(value, attribute, label):
    allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
    characters = value.elems()
    if (not value or value[0].isdigit() or
        [character for character in characters if character not in allowed.elems()]):
        fail("{}: {} = '{}' is not a C++ identifier. Give one made of letters, digits and _.".format(
            label,
            attribute,
            value,
        ))

def _onnx_cc_generate_impl(ctx):
    name = ctx.attr.library_name
    _check_identifier(ctx.attr.namespace, "namespace", ctx.label)
    if ctx.attr.shards < 1:
        fail("{}: shards = {}: at least one source shard is needed.".format(
            ctx.label,
            ctx.attr.shards,
        ))

    def declare(suffix):
        return ctx.actions.declare_file(name + suffix)

    shards = range(ctx.attr.shards)
    public_headers = [declare(".h"), declare("_alpaka.h")]
    step_headers = [declare("_steps.h")] + [declare("_steps_{}.h".format(i)) for i in shards]
    kernels_header = declare("_kernels.h")
    session = declare("_session.cc")
    steps = {
        backend: [declare("_steps_{}{}".format(i, _SOURCE_SUFFIXES[backend])) for i in shards]
        for backend in BACKENDS
    }
    weights = declare("_weights.safetensors")
    manifest = declare("_manifest.json")
    sources = public_headers + step_headers + [kernels_header, session]
    for backend in BACKENDS:
        sources.extend(steps[backend])

    arguments = ctx.actions.args()
    arguments.add("--verbosity=-1")  # Warnings and errors only.
    arguments.add(ctx.file.model, format = "--model=%s")
    arguments.add(name, format = "--name=%s")
    arguments.add(ctx.attr.namespace, format = "--namespace=%s")
    arguments.add(ctx.label.package, format = "--include_prefix=%s")
    arguments.add(manifest.dirname, format = "--output_dir=%s")
    arguments.add(ctx.attr.shards, format = "--shards=%s")
    arguments.add(ctx.attr.precision, format = "--precision=%s")
    arguments.add(ctx.attr.weights, format = "--weights=%s")
    if ctx.attr.low_rank:
        arguments.add(ctx.attr.low_rank, format = "--low_rank=%s")
    arguments.add_all(ctx.attr.strided_inputs, format_each = "--strided_input=%s")
    arguments.add_all(ctx.attr.ragged, format_each = "--ragged=%s")
    arguments.add(ctx.file._compiler_macros, format = "--compiler_macros=%s")
    ctx.actions.run(
        executable = ctx.executable._generator,
        arguments = [arguments],
        inputs = [ctx.file.model, ctx.file._compiler_macros] + ctx.files.model_data,
        outputs = sources + [weights, manifest],
        # NumPy's decompositions of matrices have the same bits on every processor, and with any
        # number of cores.
        env = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"},
        use_default_shell_env = True,  # The Python launcher looks for the interpreter on PATH.
        mnemonic = "OnnxGenerate",
        progress_message = "Generating C++ for {}".format(ctx.file.model.short_path),
    )

    return [
        DefaultInfo(
            files = depset(sources + [weights, manifest]),
            runfiles = ctx.runfiles([weights] if ctx.attr.weights == "file" else []),
        ),
        OnnxModelInfo(
            name = name,
            cpp_namespace = ctx.attr.namespace,
            model = ctx.file.model,
            manifest = manifest,
            weights = weights,
            weights_mode = ctx.attr.weights,
            precision = ctx.attr.precision,
        ),
        OutputGroupInfo(
            manifest = depset([manifest]),
            sources = depset(sources),
            weights = depset([weights]),
            # For the libraries that compile each part.
            kernels_header = depset([kernels_header]),
            public_headers = depset(public_headers),
            step_headers = depset(step_headers),
            session_source = depset([session]),
            **{backend + "_sources": depset(steps[backend]) for backend in BACKENDS}
        ),
    ]

onnx_cc_generate = rule(
    implementation = _onnx_cc_generate_impl,
    attrs = {
        "library_name": attr.string(
            doc = "Name of the C++ library; all files begin with it.",
            mandatory = True,
        ),
        "low_rank": attr.string(
            doc = "Which rank constant matrices get: `error=1e-3` or `ratio=0.5`, for instance.",
        ),
        "model": attr.label(
            doc = "The ONNX file.",
            allow_single_file = [".onnx"],
            mandatory = True,
        ),
        "model_data": attr.label_list(
            doc = "Files beside the model that hold tensors stored outside of it.",
            allow_files = True,
        ),
        "namespace": attr.string(doc = "C++ namespace: one identifier.", mandatory = True),
        "precision": attr.string(
            doc = "Of products of float32 matrices on a GPU.",
            default = "fp32",
            values = PRECISIONS,
        ),
        "ragged": attr.string_list(
            doc = "Sizes that are other ones in each row of a batch, by the names they have in the model.",
        ),
        "shards": attr.int(
            doc = "Number of source files per backend; each is one compilation.",
            default = 2,
        ),
        "strided_inputs": attr.string_list(
            doc = "Inputs whose views have strides of their own, by the names they have in the model.",
        ),
        "weights": attr.string(default = "embedded", values = WEIGHTS_MODES),
        "_compiler_macros": attr.label(
            default = "//rules/private:compiler_macros",
            allow_single_file = True,
        ),
        "_generator": attr.label(
            default = "//sofie:generate",
            executable = True,
            cfg = "exec",
        ),
    },
    doc = """Turns an ONNX model into C++ sources, a file of weights and a manifest.

What the generator refuses it reports on standard error; the build prints that as it is.""",
    provides = [OnnxModelInfo],
)
