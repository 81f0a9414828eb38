"""The rule that packs GPU tests for a machine that has a GPU but no Bazel."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")

def _runfiles_path(ctx, file):
    path = file.short_path
    return path[3:] if path.startswith("../") else ctx.workspace_name + "/" + path

def _gpu_bundle_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    files = depset(transitive = [
        depset(transitive = [test[DefaultInfo].files, test[DefaultInfo].default_runfiles.files])
        for test in ctx.attr.tests
    ])
    kept = [
        file
        for file in files.to_list()
        if not [name for name in ctx.attr.provided_libraries if name in file.basename]
    ]
    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(manifest, json.encode_indent({
        "files": {_runfiles_path(ctx, file): file.path for file in kept},
        "tests": [
            {
                "environment": test[RunEnvironmentInfo].environment,
                "name": str(test.label).lstrip("@"),
                "path": _runfiles_path(ctx, test[DefaultInfo].files_to_run.executable),
            }
            for test in ctx.attr.tests
        ],
        "workspace": ctx.workspace_name,
    }))
    bundle = ctx.actions.declare_file(ctx.label.name + ".tar.xz")
    arguments = ctx.actions.args()
    arguments.add(manifest)
    arguments.add(cc_toolchain.strip_executable)
    arguments.add(bundle)
    ctx.actions.run(
        executable = ctx.executable._pack,
        arguments = [arguments],
        inputs = depset(kept + [manifest], transitive = [cc_toolchain.all_files]),
        outputs = [bundle],
        mnemonic = "GpuBundle",
        progress_message = "Packing GPU tests into {}".format(bundle.short_path),
        use_default_shell_env = True,  # The Python launcher looks for the interpreter on PATH.
    )
    return [DefaultInfo(files = depset([bundle]))]

gpu_bundle = rule(
    implementation = _gpu_bundle_impl,
    attrs = {
        "provided_libraries": attr.string_list(
            doc = "Parts of the names of shared libraries that the other machine has.",
        ),
        "tests": attr.label_list(
            doc = "gpu_test targets.",
            mandatory = True,
            providers = [RunEnvironmentInfo],
        ),
        "_pack": attr.label(
            default = "//tests:pack_gpu_bundle",
            executable = True,
            cfg = "exec",
        ),
    },
    toolchains = use_cc_toolchain(),
    fragments = ["cpp"],
    doc = """Packs tests with all that they read into a .tar.xz, binaries stripped.

On the other machine: unpack it and call `run.sh`, or `run.sh allocation` for the tests whose names
contain that. Its exit status is 0 if all of them pass.""",
)
