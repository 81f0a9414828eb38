"""Repository rules for code that comes in packages, pinned by version and SHA-256."""

load(":python.bzl", "python_info")

# Large packages over slow lines take their time.
_TIMEOUT_SECONDS = 3600

_COMMON_ATTRS = {
    "_fetch": attr.label(default = ":fetch.py", allow_single_file = True),
    "_python": attr.label(default = "@local_python//:python.json", allow_single_file = True),
}

def _fetch(ctx, python, requirement, file, sha256, into, arguments):
    result = ctx.execute(
        [
            python["fetcher"],
            "-B",
            ctx.path(ctx.attr._fetch),
            "--requirement=" + requirement,
            "--file=" + file,
            "--sha256=" + sha256,
            "--into={}".format(ctx.path(into)),
        ] + arguments,
        timeout = _TIMEOUT_SECONDS,
    )
    if result.return_code:
        reason = result.stderr.strip() or "it took too long."
        fail("{} could not be fetched: {}".format(requirement, reason))

def _archive_package_impl(ctx):
    python = python_info(ctx, ctx.attr._python)
    for package in ctx.attr.packages:
        package = json.decode(package)
        ctx.report_progress("Fetching " + package["requirement"])
        _fetch(
            ctx,
            python,
            package["requirement"],
            package["file"]["name"],
            package["file"]["sha256"],
            ".",
            ["--strip-prefix=" + ctx.attr.strip_prefix] +
            ["--include=" + pattern for pattern in ctx.attr.include] +
            ["--exclude=" + pattern for pattern in ctx.attr.exclude],
        )
    ctx.file("BUILD.bazel", ctx.read(ctx.attr.build_file), executable = False)

archive_package = repository_rule(
    implementation = _archive_package_impl,
    attrs = _COMMON_ATTRS | {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "exclude": attr.string_list(doc = "Patterns of files to leave out; * matches slashes too."),
        "include": attr.string_list(doc = "Patterns of files to unpack; all, if empty."),
        "packages": attr.string_list(
            mandatory = True,
            doc = "Entries of lock.json's archives, as JSON; they are unpacked into one tree.",
        ),
        "strip_prefix": attr.string(doc = "Only what lies below this folder is unpacked."),
    },
    doc = "C++ or CUDA code out of one or more packages, as one tree.",
)

_PYTHON_BUILD = """\
load("@rules_python//python:defs.bzl", "py_library")

package(default_visibility = ["//visibility:public"])

py_library(
    name = "package",
    # As one folder: a sandbox then makes one link and not one for each of thousands of files.
    data = ["site-packages"],
    imports = ["site-packages"],
    deps = {deps},
)
"""

_PROGRAM_BUILD = """
alias(
    name = "program",
    actual = "{program}",
)
"""

def _python_package_impl(ctx):
    python = python_info(ctx, ctx.attr._python)
    package = json.decode(ctx.attr.package)
    file = package["files"][python["tag"]]
    ctx.report_progress("Fetching " + package["requirement"])
    _fetch(
        ctx,
        python,
        package["requirement"],
        file["name"],
        file["sha256"],
        "site-packages",
        ["--python"] + ["--exclude=" + pattern for pattern in ctx.attr.exclude],
    )
    build = _PYTHON_BUILD.format(deps = repr(["@pypi//:" + name for name in package["requires"]]))
    if ctx.attr.program:
        build += _PROGRAM_BUILD.format(program = ctx.attr.program)
    ctx.file("BUILD.bazel", build, executable = False)

python_package = repository_rule(
    implementation = _python_package_impl,
    attrs = _COMMON_ATTRS | {
        "exclude": attr.string_list(doc = "Patterns of files to leave out; * matches slashes too."),
        "package": attr.string(mandatory = True, doc = "Entry in lock.json, as JSON."),
        "program": attr.string(doc = "Path of a program in the package, to be run as it is."),
    },
    doc = "One Python package, for the machine's Python.",
)

_ALIAS = """
alias(
    name = "{name}",
    actual = "@pypi_{package}//:{target}",
)
"""

def _python_hub_impl(ctx):
    build = 'package(default_visibility = ["//visibility:public"])\n'
    for name in ctx.attr.packages:
        build += _ALIAS.format(name = name, package = name, target = "package")
    for name in ctx.attr.programs:
        build += _ALIAS.format(name = name + "_program", package = name, target = "program")
    ctx.file("BUILD.bazel", build, executable = False)

python_hub = repository_rule(
    implementation = _python_hub_impl,
    attrs = {
        "packages": attr.string_list(mandatory = True),
        "programs": attr.string_list(doc = "Packages with a program, NAME_program in the hub."),
    },
    doc = "One repository with a target for each Python package.",
)
