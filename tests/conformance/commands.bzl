"""The rule that says how generated code is compiled and linked outside of a build."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("//rules/cuda:cuda_library.bzl", "NVCC_ATTRIBUTES", "include_options", "nvcc_options")
load("//rules/private:backends.bzl", "with_cuda")

_CUDA = "//rules/cuda:toolchain_type"

# Stands for the folder of the runfiles.
_ROOT = "{runfiles}"

def _place(ctx, path):
    """A path of the build as one below the runfiles, where the runner has its files."""
    if path.startswith("/"):
        return path
    for root in [ctx.bin_dir.path, ctx.genfiles_dir.path]:
        if path == root:
            path = "."
        path = path.removeprefix(root + "/")
    if path.startswith("external/"):
        return "{}/{}".format(_ROOT, path.removeprefix("external/"))
    if path in ("", "."):
        return "{}/{}".format(_ROOT, ctx.workspace_name)
    return "{}/{}/{}".format(_ROOT, ctx.workspace_name, path)

def _includes(ctx, compilation_context):
    placed = {}
    for option, path in include_options(compilation_context):
        placed[(option, _place(ctx, path))] = True
    return [word for pair in placed for word in pair]

def _libraries(linking_context):
    files = []
    flags = []
    for linker_input in linking_context.linker_inputs.to_list():
        flags.extend(linker_input.user_link_flags)
        for library in linker_input.libraries:
            files.append(library.static_library or library.pic_static_library or
                         library.dynamic_library)
    return files, flags

def _compile_commands_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    cc_info = cc_common.merge_cc_infos(cc_infos = [target[CcInfo] for target in ctx.attr.deps])
    compilation_context = cc_info.compilation_context
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
    )
    options = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
            use_pic = True,
            user_compile_flags = ctx.attr.copts + ctx.fragments.cpp.copts +
                                 ctx.fragments.cpp.cxxopts,
        ),
    )
    link_options = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_link_executable,
        variables = cc_common.create_link_variables(
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
            is_linking_dynamic_library = False,
            is_using_linker = True,
            user_link_flags = ctx.fragments.cpp.linkopts,
        ),
    )
    linker = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_link_executable,
    )
    includes = _includes(ctx, compilation_context)
    defines = ["-D" + define for define in compilation_context.defines.to_list()]
    libraries, user_link_flags = _libraries(cc_info.linking_context)

    nvcc = []
    cuda_files = depset()
    if ctx.attr._cuda:
        cuda = ctx.toolchains[_CUDA].cuda
        cuda_files = cuda.compiler_files
        cuda_context = cc_common.merge_compilation_contexts(
            compilation_contexts = [compilation_context, cuda.cc_info.compilation_context],
        )
        nvcc = [_place(ctx, cuda.nvcc.path), "-ccbin=" + _place(ctx, compiler)]
        nvcc += nvcc_options(ctx) + ctx.attr.nvcc_copts + defines + _includes(ctx, cuda_context)

    output = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(output, json.encode_indent({
        "compile": [_place(ctx, compiler)] + options + defines + includes,
        "libraries": [_place(ctx, file.path) for file in libraries],
        "link": [_place(ctx, linker)],
        "link_flags": user_link_flags + link_options,
        "nvcc": nvcc,
    }))
    return [DefaultInfo(
        files = depset([output]),
        runfiles = ctx.runfiles(
            [output] + libraries,
            transitive_files = depset(transitive = [
                compilation_context.headers,
                cc_toolchain.all_files,
                cuda_files,
            ]),
        ),
    )]

_TRANSITION_ATTRIBUTES = {
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}

def _rule(cuda):
    return rule(
        implementation = _compile_commands_impl,
        attrs = {
            "copts": attr.string_list(doc = "Options for the C++ compiler."),
            "deps": attr.label_list(
                doc = "What the code includes, and the program is linked with.",
                providers = [CcInfo],
            ),
            "nvcc_copts": attr.string_list(doc = "Options for nvcc."),
            "_cuda": attr.bool(default = cuda),
        } | NVCC_ATTRIBUTES | (_TRANSITION_ATTRIBUTES if cuda else {}),
        cfg = with_cuda if cuda else None,
        doc = """Writes the commands that compile and link code which is generated while a program runs.

The file is JSON: `compile` and `nvcc`, the compilers with options; `link`, `libraries` and
`link_flags`, the words of the linker's command, objects coming after `link`. "{runfiles}" stands for the folder of the runfiles, which have all that the
commands read.""",
        fragments = ["cpp"],
        toolchains = use_cc_toolchain() + ([_CUDA] if cuda else []),
    )

# For the backends of the build; and for CUDA, whatever the build has.
compile_commands = _rule(cuda = False)
cuda_compile_commands = _rule(cuda = True)
