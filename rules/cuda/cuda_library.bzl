"""The rule that compiles CUDA sources."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load(":gencode.bzl", "gencode_options")

_TOOLCHAIN_TYPE = "//rules/cuda:toolchain_type"

# What device code relies on in this project and in alpaka.
_LANGUAGE_OPTIONS = [
    "-std=c++20",
    "--expt-relaxed-constexpr",
    "--extended-lambda",
]

# Host code that device code calls is a bug that would show at run time only.
_DIAGNOSTIC_OPTIONS = [
    "--Werror=cross-execution-space-call",
    "--display-error-number",
]

# Options of the host compiler that the code which nvcc writes for it can't be compiled with.
_REFUSED_HOST_OPTIONS = ["-Wpedantic", "-pedantic", "-pedantic-errors"]

_WARNINGS = ["-Wall", "-Wextra"]

# GCC 12 and 13 see overlapping copies in std::string's operator+ that are not there (GCC bug 105651).
_FALSE_ALARMS = ["-Wno-restrict"]

_MODE_OPTIONS = {
    "dbg": ["-O0", "-g"],
    "fastbuild": ["-O2"],
    "opt": ["-O3", "-DNDEBUG"],
}

# Of every rule that calls nvcc_options.
NVCC_ATTRIBUTES = {
    "_archs": attr.label(default = "//rules/cuda:archs", providers = [BuildSettingInfo]),
    "_warnings_as_errors": attr.label(
        default = "//rules/cuda:warnings_as_errors",
        providers = [BuildSettingInfo],
    ),
}

def _is_external(path):
    return path.startswith("external/") or "/external/" in path

def _host_options(ctx):
    """Options for the host compiler, those of the command line included."""
    configured = [
        option
        for option in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
        if not option.startswith("-std=") and option not in _REFUSED_HOST_OPTIONS
    ]
    options = ["-fPIC"] + _WARNINGS + configured + _FALSE_ALARMS
    if _warnings_are_errors(ctx):
        options.append("-Werror")
    return options

def _warnings_are_errors(ctx):
    """Only in the workspace that asks for it, not where its libraries are used."""
    return ctx.attr._warnings_as_errors[BuildSettingInfo].value and not ctx.label.workspace_name

def _for_host_compiler(options):
    return ["-Xcompiler=" + option.replace(",", "\\,") for option in options]

def nvcc_options(ctx, archs = [], origin = ""):
    """nvcc's options but for the compilers, include directories and defines.

    Args:
      ctx: of a rule with NVCC_ATTRIBUTES and the fragment `cpp`.
      archs: architectures in place of those of the build setting.
      origin: string, what names `archs` in an error message.

    Returns:
      list of string.
    """
    if not archs:
        archs = ctx.attr._archs[BuildSettingInfo].value
        origin = "build setting --{}".format(ctx.attr._archs.label)
    options = ["-x", "cu"] + gencode_options(archs, origin)
    if "sm_90a" in archs:
        # To the host's code: on such a GPU there are kernels with wgmma.
        options.append("-DSOFIE_SM_90A")
    options += _LANGUAGE_OPTIONS + _DIAGNOSTIC_OPTIONS
    if _warnings_are_errors(ctx):
        options.append("--Werror=all-warnings")
    options += _MODE_OPTIONS[ctx.var["COMPILATION_MODE"]]
    return options + _for_host_compiler(_host_options(ctx))

def include_options(compilation_context):
    """Include directories; of other repositories as system directories, that do not warn.

    Args:
      compilation_context: CompilationContext.

    Returns:
      list of pairs: the option, "-I" or "-isystem", and the directory.
    """
    own = depset(transitive = [compilation_context.quote_includes, compilation_context.includes])
    options = []
    for path in own.to_list():
        options.append(("-isystem" if _is_external(path) else "-I", path))
    for path in depset(transitive = [
        compilation_context.system_includes,
        compilation_context.external_includes,
    ]).to_list():
        options.append(("-isystem", path))
    return options

def _object_path(ctx, source):
    """A folder of its own for each object: nvcc's temporary files are made beside it."""
    package = ctx.label.package + "/" if ctx.label.package else ""
    relative = source.short_path.removeprefix("../").removeprefix(package)
    stem = relative.removesuffix(".cu")
    return "_objs/{}/{}/{}.pic.o".format(ctx.label.name, stem, stem.split("/")[-1])

def _compile(ctx, source, nvcc_arguments, cuda, inputs, environment):
    object_file = ctx.actions.declare_file(_object_path(ctx, source))
    arguments = ctx.actions.args()
    arguments.add(source)
    arguments.add("-o", object_file)

    # Intermediate names and hashed symbols reach the object: both may depend on the object's own
    # path only, never on a temporary folder or on a random number.
    arguments.add("-objtemp")
    arguments.add(object_file.short_path, format = "--frandom-seed=%s")
    arguments.add(object_file.short_path, format = "-Xcompiler=-frandom-seed=%s")
    ctx.actions.run(
        executable = cuda.nvcc,
        arguments = [nvcc_arguments, arguments],
        inputs = depset([source], transitive = [inputs]),
        outputs = [object_file],
        env = environment,
        use_default_shell_env = True,  # The host compiler looks for its assembler on PATH.
        mnemonic = "CudaCompile",
        progress_message = "Compiling CUDA source {}".format(source.short_path),
        toolchain = _TOOLCHAIN_TYPE,
    )
    return object_file

def _lint(ctx, files):
    """Checks the files of this repository that nvcc compiles; see lint.py."""
    report = ctx.actions.declare_file(ctx.label.name + ".cuda_lint")
    arguments = ctx.actions.args()
    arguments.add(report, format = "--output=%s")
    arguments.add_all(files)
    arguments.use_param_file("--flagfile=%s", use_always = False)
    arguments.set_param_file_format("multiline")
    ctx.actions.run(
        executable = ctx.executable._lint,
        arguments = [arguments],
        inputs = files,
        outputs = [report],
        use_default_shell_env = True,  # The Python launcher looks for the interpreter on PATH.
        mnemonic = "CudaLint",
        progress_message = "Checking CUDA sources of %{label}",
    )
    return report

def _own_headers(compilation_context):
    return [
        header
        for header in compilation_context.headers.to_list()
        if not header.owner.workspace_name
    ]

def _cuda_library_impl(ctx):
    cuda = ctx.toolchains[_TOOLCHAIN_TYPE].cuda
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    workspace_root = ctx.label.workspace_root
    roots = [workspace_root or ".", "/".join([
        part
        for part in [ctx.bin_dir.path, workspace_root]
        if part
    ])]
    package_directories = [
        "/".join([part for part in [root, ctx.label.package, include] if part])
        for include in ctx.attr.includes
        for root in ([workspace_root] + roots[1:])
    ]
    own_context = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset(roots),
        system_includes = depset(package_directories),
        defines = depset(ctx.attr.defines),
    )
    dependencies = [target[CcInfo] for target in ctx.attr.deps] + [cuda.cc_info]
    compilation_context = cc_common.merge_compilation_contexts(
        compilation_contexts = [own_context] + [dep.compilation_context for dep in dependencies],
    )

    host_compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
    )

    arguments = ctx.actions.args()
    arguments.add("-c")
    arguments.add(host_compiler, format = "-ccbin=%s")
    arguments.add_all(nvcc_options(
        ctx,
        ctx.attr.archs,
        "attribute 'archs' of {}".format(ctx.label),
    ))
    arguments.add_all(compilation_context.defines, format_each = "-D%s")
    arguments.add_all(ctx.attr.local_defines, format_each = "-D%s")
    for option, path in include_options(compilation_context):
        arguments.add(option, path)
    arguments.add_all(_for_host_compiler(ctx.attr.host_copts))
    arguments.add_all(ctx.attr.copts)

    inputs = depset(
        ctx.files.hdrs + ctx.files.textual_hdrs,
        transitive = [
            cuda.compiler_files,
            cc_toolchain.all_files,
            compilation_context.headers,
        ],
    )
    environment = cc_common.get_environment_variables(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
        ),
    )
    objects = [
        _compile(ctx, source, arguments, cuda, inputs, environment)
        for source in ctx.files.srcs
    ]
    report = _lint(ctx, ctx.files.srcs + ctx.files.textual_hdrs + _own_headers(compilation_context))

    linking_contexts = [dep.linking_context for dep in dependencies]
    if ctx.attr.linkopts:
        linking_contexts.append(cc_common.create_linking_context(
            linker_inputs = depset([cc_common.create_linker_input(
                owner = ctx.label,
                user_link_flags = depset(ctx.attr.linkopts),
            )]),
        ))
    if objects:
        linking_context, outputs = cc_common.create_linking_context_from_compilation_outputs(
            name = ctx.label.name,
            actions = ctx.actions,
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
            compilation_outputs = cc_common.create_compilation_outputs(
                # The same objects serve both kinds of link.
                objects = depset(objects),
                pic_objects = depset(objects),
            ),
            linking_contexts = linking_contexts,
            alwayslink = ctx.attr.alwayslink,
            # nvcc's objects register themselves with the one CUDA runtime of the program.
            disallow_dynamic_library = True,
        )
        library = outputs.library_to_link
        libraries = [library.static_library or library.pic_static_library]
    else:
        linking_context = cc_common.merge_linking_contexts(linking_contexts = linking_contexts)
        libraries = []

    return [
        DefaultInfo(files = depset(libraries)),
        CcInfo(
            compilation_context = cc_common.merge_compilation_contexts(
                compilation_contexts = [own_context] +
                                       [dep.compilation_context for dep in dependencies],
            ),
            linking_context = linking_context,
        ),
        OutputGroupInfo(
            compilation_outputs = depset(objects),
            _validation = depset([report]),
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh", ".hpp", ".inc"]),
        "textual_hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "host_copts": attr.string_list(),
        "defines": attr.string_list(),
        "local_defines": attr.string_list(),
        "includes": attr.string_list(),
        "linkopts": attr.string_list(),
        "archs": attr.string_list(),
        "alwayslink": attr.bool(),
        "_lint": attr.label(default = "//rules/cuda:lint", executable = True, cfg = "exec"),
    } | NVCC_ATTRIBUTES,
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain() + [_TOOLCHAIN_TYPE],
    doc = "Compiles CUDA sources; use it through the macro `cuda_library`.",
)

def cuda_library(name, **kwargs):
    """Compiles CUDA sources with nvcc into a library that C++ targets can depend on.

    Each source is one action. The host compiler is that of the C++ toolchain. Headers of other
    repositories that come with `deps` are system headers. Objects are position-independent and
    have the same bytes in every folder, for which no file of this repository that nvcc compiles
    may have an anonymous namespace or an internal-linkage device variable: the build checks that.

    Without "cuda" in `--//sofie:backends` the target is incompatible: `//...` skips it, and
    nothing of CUDA is fetched. Depend on it with
    `select({"@sofie//sofie:with_cuda": [":name"], "//conditions:default": []})`.

    Args:
      name: name of the target.
      **kwargs: attributes:
        srcs: sources, `.cu`.
        hdrs: headers for dependents.
        textual_hdrs: files that only these sources include.
        deps: targets with CcInfo; the CUDA runtime is always among them.
        copts: options for nvcc.
        host_copts: options for the host compiler, beside those of --copt and --cxxopt.
        defines, local_defines, includes, linkopts, alwayslink: as in cc_library.
        archs: architectures in place of `--//rules/cuda:archs`. Sources that need wgmma or TMA
          say ["sm_90a"]; for such no PTX is made.
    """
    kwargs.setdefault("target_compatible_with", select({
        str(Label("//sofie:with_cuda")): [],
        "//conditions:default": [str(Label("@platforms//:incompatible"))],
    }))
    _cuda_library(name = name, **kwargs)
