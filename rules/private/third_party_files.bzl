"""The rule that lists the third-party files that programs are made of."""

load("@rules_cc//cc:defs.bzl", "CcInfo")
load(":backends.bzl", "with_cuda")

_FilesInfo = provider(
    doc = "What a program is compiled and linked from.",
    fields = {"files": "depset of File: headers and libraries."},
)

def _files_impl(_target, ctx):
    files = []
    for dep in getattr(ctx.rule.attr, "deps", []):
        if CcInfo not in dep:
            continue
        files.append(dep[CcInfo].compilation_context.headers)
        for linked in dep[CcInfo].linking_context.linker_inputs.to_list():
            files.append(depset([
                file
                for library in linked.libraries
                for file in [
                    # Where it lies, not the link that programs load it by.
                    library.resolved_symlink_dynamic_library or library.dynamic_library,
                    library.static_library,
                    library.pic_static_library,
                ]
                if file
            ]))
    return [_FilesInfo(files = depset(transitive = files))]

_files_aspect = aspect(
    implementation = _files_impl,
    doc = "Reads what a program's dependencies give to it.",
)

def _third_party_files_impl(ctx):
    programs = {}
    for program in ctx.attr.programs:
        programs[str(program.label)] = sorted({
            file.path: True
            for file in program[_FilesInfo].files.to_list()
            if file.owner.workspace_name
        }.keys())
    output = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(output, json.encode_indent(programs))
    return [DefaultInfo(files = depset([output]))]

third_party_files = rule(
    implementation = _third_party_files_impl,
    attrs = {
        "programs": attr.label_list(
            doc = "cc_binary targets.",
            aspects = [_files_aspect],
            mandatory = True,
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    cfg = with_cuda,
    doc = """Writes the paths of all files of other repositories that programs are compiled and linked from.

The CUDA backend is among them whatever the build contains. JSON: a list of paths for each label.""",
)
