"""The rule that compiles a CUDA source into machine code alone."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("//rules/cuda:cuda_library.bzl", "NVCC_ATTRIBUTES", "include_options", "nvcc_options")
load("//rules/private:backends.bzl", "with_cuda")

_CUDA = "//rules/cuda:toolchain_type"

def _cubin_impl(ctx):
    cuda = ctx.toolchains[_CUDA].cuda
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = cc_toolchain)
    compilation_context = cc_common.merge_compilation_contexts(
        compilation_contexts = [target[CcInfo].compilation_context for target in ctx.attr.deps] +
                               [cuda.cc_info.compilation_context],
    )
    output = ctx.actions.declare_file(ctx.label.name + ".cubin")
    arguments = ctx.actions.args()
    arguments.add("-cubin")
    arguments.add(
        cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = ACTION_NAMES.cpp_compile,
        ),
        format = "-ccbin=%s",
    )
    arguments.add_all(nvcc_options(ctx, [ctx.attr.arch], "attribute 'arch' of {}".format(ctx.label)))
    arguments.add_all(compilation_context.defines, format_each = "-D%s")
    for option, path in [("-I", "."), ("-I", ctx.bin_dir.path)] + include_options(compilation_context):
        arguments.add(option, path)
    arguments.add(ctx.file.src)
    arguments.add("-o", output)
    ctx.actions.run(
        executable = cuda.nvcc,
        arguments = [arguments],
        inputs = depset(
            [ctx.file.src] + ctx.files.hdrs,
            transitive = [
                cuda.compiler_files,
                cc_toolchain.all_files,
                compilation_context.headers,
            ],
        ),
        outputs = [output],
        use_default_shell_env = True,  # The host compiler looks for its assembler on PATH.
        mnemonic = "CudaCubin",
        progress_message = "Compiling {} for {}".format(ctx.file.src.short_path, ctx.attr.arch),
        toolchain = _CUDA,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

cubin = rule(
    implementation = _cubin_impl,
    attrs = {
        "arch": attr.string(
            doc = "An architecture with a suffix, such as sm_90a: of it no PTX is made.",
            mandatory = True,
        ),
        "deps": attr.label_list(doc = "What the source includes.", providers = [CcInfo]),
        "hdrs": attr.label_list(doc = "Headers that it includes besides.", allow_files = True),
        "src": attr.label(doc = "The source.", allow_single_file = [".cu"], mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    } | NVCC_ATTRIBUTES,
    cfg = with_cuda,
    doc = "Compiles a CUDA source, whatever the backends of the build are, to an ELF file of kernels.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain() + [_CUDA],
)
