"""The rule that makes an object file of a file's bytes."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")

# What binutils calls the objects and the machine of a toolchain's `cpu`.
_OBJECT_FORMATS = {
    "aarch64": ("elf64-littleaarch64", "aarch64"),
    "k8": ("elf64-x86-64", "i386:x86-64"),
    "x86_64": ("elf64-x86-64", "i386:x86-64"),
}

def _binary_symbol(path):
    """The name that objcopy makes of the path of its input."""
    return "_binary_" + "".join([
        character if character.isalnum() else "_"
        for character in path.elems()
    ])

def _embed_data_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    if cc_toolchain.cpu not in _OBJECT_FORMATS:
        fail("{}: data can't be embedded for cpu '{}', only for {}.".format(
            ctx.label,
            cc_toolchain.cpu,
            ", ".join(sorted(_OBJECT_FORMATS)),
        ))
    object_format, machine = _OBJECT_FORMATS[cc_toolchain.cpu]
    data = ctx.file.data
    symbol = ctx.attr.symbol
    section = ".rodata." + symbol
    object_file = ctx.actions.declare_file("_objs/{}/{}.o".format(ctx.label.name, symbol))

    arguments = ctx.actions.args()
    arguments.add_all(["-I", "binary", "-O", object_format, "-B", machine])
    arguments.add(section, format = "--rename-section=.data=%s,alloc,load,readonly,data,contents")
    arguments.add("--set-section-alignment=.data={}".format(ctx.attr.alignment))
    for end in ["start", "end"]:
        arguments.add("--redefine-sym={binary}_{end}={symbol}_{end}".format(
            binary = _binary_symbol(data.path),
            end = end,
            symbol = symbol,
        ))
    arguments.add("--strip-symbol={}_size".format(_binary_symbol(data.path)))

    # An object without this section would make the stack of the program executable.
    arguments.add("--add-section=.note.GNU-stack=/dev/null")
    arguments.add("--set-section-flags=.note.GNU-stack=contents,readonly")
    arguments.add(data)
    arguments.add(object_file)
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = ACTION_NAMES.objcopy_embed_data,
        ),
        arguments = [arguments],
        inputs = depset([data], transitive = [cc_toolchain.all_files]),
        outputs = [object_file],
        mnemonic = "EmbedData",
        progress_message = "Embedding {}".format(data.short_path),
    )

    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            # Data needs no relocation: the same object serves both kinds of link.
            objects = depset([object_file]),
            pic_objects = depset([object_file]),
        ),
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset([object_file])),
        CcInfo(linking_context = linking_context),
    ]

embed_data = rule(
    implementation = _embed_data_impl,
    attrs = {
        "alignment": attr.int(doc = "Alignment of the first byte.", default = 256),
        "data": attr.label(doc = "The file.", allow_single_file = True, mandatory = True),
        "symbol": attr.string(
            doc = "The bytes lie from symbol <symbol>_start up to <symbol>_end.",
            mandatory = True,
        ),
    },
    doc = """Links the bytes of a file into the program, read-only, by way of objcopy.

No compiler sees them. C++ declares `extern "C" const std::byte <symbol>_start[], <symbol>_end[];`.""",
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)
