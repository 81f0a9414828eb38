"""The rule that asks the C++ compiler which it is."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")

def _compiler_macros_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
    )
    macros = ctx.actions.declare_file(ctx.label.name + ".h")
    arguments = ctx.actions.args()
    arguments.add_all([macros, compiler])
    ctx.actions.run_shell(
        # Any header of the standard library has the C library's version too.
        command = """echo '#include <cstddef>' | "$2" -E -dM -x c++ - > "$1" """,
        arguments = [arguments],
        inputs = cc_toolchain.all_files,
        outputs = [macros],
        mnemonic = "CompilerMacros",
        progress_message = "Asking the C++ compiler for its version",
    )
    return [DefaultInfo(files = depset([macros]))]

compiler_macros = rule(
    implementation = _compiler_macros_impl,
    doc = "A file of all macros that the C++ compiler and its C library define, versions among them.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
