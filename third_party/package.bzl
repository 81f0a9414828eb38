"""Repository rules for code that comes in packages, pinned by version and SHA-256."""

load(":python.bzl", "python_info")

# Large packages over slow lines take their time.
_TIMEOUT_SECONDS = 3600

_COMMON_ATTRS = {
    "_fetch": attr.label(default = ":fetch.py", allow_single_file = True),
    "_python": attr.label(default = "@local_python//:python.json", allow_single_file = True),
}

def _fetch(ctx, python, requirement, file, sha256, into, arguments):
    # Read by fetch.py; asked for here so that another folder fetches again.
    vendored = ctx.getenv("SOFIE_VENDOR_DIR")
    if vendored and not vendored.startswith("/"):
        fail("SOFIE_VENDOR_DIR is '{}'; it has to be an absolute path.".format(vendored))
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

def _link_home(ctx, home):
    """Links a toolkit that the machine has in the place of packages."""
    for place, source in ctx.attr.home_links.items():
        path = ctx.path(home + "/" + source)
        if not path.exists:
            fail("{} names {}, which has no {}.".format(ctx.attr.home, home, source))
        ctx.symlink(path, place)

def _archive_package_impl(ctx):
    ctx.file("BUILD.bazel", ctx.read(ctx.attr.build_file), executable = False)
    home = ctx.getenv(ctx.attr.home) if ctx.attr.home else None
    if home:
        _link_home(ctx, home)
        return
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

archive_package = repository_rule(
    implementation = _archive_package_impl,
    attrs = _COMMON_ATTRS | {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "exclude": attr.string_list(doc = "Patterns of files to leave out; * matches slashes too."),
        "home": attr.string(
            doc = "Environment variable with the path of a toolkit to use in place of the packages.",
        ),
        "home_links": attr.string_dict(
            doc = "What to take of that toolkit: path here, and path below the toolkit's folder.",
        ),
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
    # As one folder: a sandbox then makes one link and not one for each of thousands of files. Bazel
    # sends folders among runfiles to no other machine (they would arrive at another path).
    data = select({{
        "{elsewhere}": glob(["site-packages/**"]),
        "//conditions:default": ["site-packages"],
    }}),
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
    build = _PYTHON_BUILD.format(
        deps = repr(["@pypi//:" + name for name in package["requires"]]),
        elsewhere = str(Label("//platforms:image")),
    )
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

_CUDA_ALIAS = """
alias(
    name = "{name}",
    actual = select({{
{cases}    }}),
)
"""

def _cuda_hub_impl(ctx):
    build = 'package(default_visibility = ["//visibility:public"])\n'
    for name in ["cublaslt", "cudart_static", "headers"]:
        cases = "".join([
            '        "{}": "@cuda_{}//:{}",\n'.format(
                Label("//rules/cuda:version_" + suffix),
                suffix,
                name,
            )
            for suffix in ctx.attr.suffixes.values()
        ])
        build += _CUDA_ALIAS.format(name = name, cases = cases)
    ctx.file("BUILD.bazel", build, executable = False)

cuda_hub = repository_rule(
    implementation = _cuda_hub_impl,
    attrs = {
        "suffixes": attr.string_dict(
            doc = "For each release the end of the name of its repository, cuda_<suffix>.",
        ),
    },
    doc = "CUDA's libraries of the release that //rules/cuda:version says.",
)
