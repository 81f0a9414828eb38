"""The rule that packs GPU tests and benchmarks for a machine that has a GPU but no Bazel."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")

def _runfiles_path(ctx, file):
    path = file.short_path
    return path[3:] if path.startswith("../") else ctx.workspace_name + "/" + path

def _gpu_bundle_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)

    def kept(target):
        files = depset(transitive = [
            target[DefaultInfo].files,
            target[DefaultInfo].default_runfiles.files,
        ])
        return [
            file
            for file in files.to_list()
            if not [name for name in ctx.attr.provided_libraries if name in file.basename]
        ]

    files = {}
    programs = []
    for kind, targets in [("test", ctx.attr.tests), ("benchmark", ctx.attr.benchmarks)]:
        for target in targets:
            own = {_runfiles_path(ctx, file): file for file in kept(target)}
            files.update(own)
            programs.append({
                "environment": target[RunEnvironmentInfo].environment,
                "files": own.keys(),
                "kind": kind,
                "name": str(target.label).lstrip("@"),
                "path": _runfiles_path(ctx, target[DefaultInfo].files_to_run.executable),
            })
    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(manifest, json.encode_indent({
        "archs": ctx.attr._archs[BuildSettingInfo].value,
        "cuda": ctx.attr._cuda_version[BuildSettingInfo].value,
        "files": {name: file.path for name, file in files.items()},
        "programs": programs,
        "runner": [file.path for file in ctx.files._runner],
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
        inputs = depset(
            files.values() + ctx.files._runner + [manifest],
            transitive = [cc_toolchain.all_files],
        ),
        outputs = [bundle],
        mnemonic = "GpuBundle",
        progress_message = "Packing GPU programs into {}".format(bundle.short_path),
        use_default_shell_env = True,  # The Python launcher looks for the interpreter on PATH.
    )
    return [DefaultInfo(files = depset([bundle]))]

gpu_bundle = rule(
    implementation = _gpu_bundle_impl,
    attrs = {
        "benchmarks": attr.label_list(
            doc = "gpu_test targets that measure: they are run one at a time.",
            providers = [RunEnvironmentInfo],
        ),
        "provided_libraries": attr.string_list(
            doc = "Parts of the names of shared libraries that the other machine has.",
        ),
        "tests": attr.label_list(
            doc = "gpu_test targets.",
            providers = [RunEnvironmentInfo],
        ),
        "_archs": attr.label(default = "//rules/cuda:archs", providers = [BuildSettingInfo]),
        "_cuda_version": attr.label(
            default = "//rules/cuda:version",
            providers = [BuildSettingInfo],
        ),
        "_pack": attr.label(
            default = "//tests/bundle:pack",
            executable = True,
            cfg = "exec",
        ),
        "_runner": attr.label(default = "//tests/bundle:runner"),
    },
    toolchains = use_cc_toolchain(),
    fragments = ["cpp"],
    doc = """Packs programs with all that they read into a .tar.xz, binaries stripped.

On the other machine: unpack it and call `run.sh`; `run.sh --help` says what it does.""",
)
