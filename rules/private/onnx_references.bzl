"""The rule that computes what an ONNX model should give."""

load(":backends.bzl", "with_default_backends")

def _file_name(case):
    """`N=1,n_pf=100` as it is; what a path can't hold becomes an underscore."""
    allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=,._-".elems()
    return "".join([
        character if character in allowed else "_"
        for character in case.elems()
    ]) or "fixed"

def _onnx_references_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("--verbosity=-1")  # Warnings and errors only.
    arguments.add(ctx.file.model, format = "--model=%s")
    if ctx.attr.tolerance:
        arguments.add("--tolerance=" + ctx.attr.tolerance)
    outputs = []
    for case in ctx.attr.cases:
        output = ctx.actions.declare_file("{}/{}.npz".format(ctx.label.name, _file_name(case)))
        arguments.add("--case=" + case)
        arguments.add(output, format = "--output=%s")
        outputs.append(output)
    ctx.actions.run(
        executable = ctx.executable._reference,
        arguments = [arguments],
        inputs = [ctx.file.model] + ctx.files.model_data,
        outputs = outputs,
        use_default_shell_env = True,  # The Python launcher looks for the interpreter on PATH.
        mnemonic = "OnnxReference",
        progress_message = "Computing the reference outputs of {}".format(
            ctx.file.model.short_path,
        ),
    )
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs))]

onnx_references = rule(
    implementation = _onnx_references_impl,
    attrs = {
        "cases": attr.string_list(
            doc = "Extents of the model's symbols, such as `N=1,n_pf=100`; one file is made of each.",
            mandatory = True,
            allow_empty = False,
        ),
        "model": attr.label(allow_single_file = [".onnx"], mandatory = True),
        "model_data": attr.label_list(allow_files = True),
        "tolerance": attr.string(
            doc = "Largest relative error of float32 outputs; by default that of float32 arithmetic.",
        ),
        "_reference": attr.label(
            default = "//models:reference",
            executable = True,
            cfg = "exec",
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    cfg = with_default_backends,
    doc = """Draws inputs for an ONNX model and computes the outputs with ONNX's own programs.

The format of the files is described in models/reference.py.""",
)
