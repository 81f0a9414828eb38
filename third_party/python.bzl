"""The machine's own Python: interpreter of py_binary and py_test, and of the repository rules."""

_MINORS = (11, 12, 13)

_PROBE = """
import platform, sys
assert sys.implementation.name == "cpython" and platform.machine() == "x86_64"
print(sys.version_info[0], sys.version_info[1])
print(sys.executable)
# Not a virtual environment's: what is installed there would be seen by all that the build runs.
print(sys._base_executable)
"""

_BUILD = """\
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{executable}",
    python_version = "PY3",
    stub_shebang = "#!{executable}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    exec_compatible_with = [
        "@platforms//cpu:x86_64",
        "@platforms//os:linux",
    ],
    target_compatible_with = [
        "@platforms//cpu:x86_64",
        "@platforms//os:linux",
    ],
    toolchain = ":runtime_pair",
    toolchain_type = "@rules_python//python:toolchain_type",
)

exports_files(["python.json"])
"""

def _write(ctx, fetcher, version, executable):
    ctx.file("python.json", json.encode({
        "fetcher": fetcher,
        "tag": "cp" + version.replace(".", ""),
    }), executable = False)
    ctx.file("BUILD.bazel", _BUILD.format(executable = executable), executable = False)

def _local_python_impl(ctx):
    named = ctx.getenv("SOFIE_PYTHON")
    versions = ["3.{}".format(minor) for minor in _MINORS]
    candidates = [named] if named else ["python3"] + ["python" + version for version in versions]
    seen = []
    for candidate in candidates:
        program = candidate if candidate.startswith("/") else ctx.which(candidate)
        if not program:
            continue
        probe = ctx.execute([program, "-c", _PROBE])
        if probe.return_code:
            seen.append("{} does not run as CPython on x86-64".format(program))
            continue
        version, fetcher, executable = probe.stdout.splitlines()
        major, minor = version.split(" ")
        if major != "3" or int(minor) not in _MINORS:
            seen.append("{} is {}.{}".format(program, major, minor))
            continue
        elsewhere = ctx.getenv("SOFIE_EXECUTOR_PYTHON")
        if elsewhere:
            version, _, executable = elsewhere.partition(":")
            if version not in versions or not executable.startswith("/"):
                fail(("SOFIE_EXECUTOR_PYTHON is '{}'; it has to be one of the versions {} and a path, " +
                      "as in 3.11:/usr/bin/python3.11.").format(elsewhere, ", ".join(versions)))
            _write(ctx, fetcher, version, executable)
        else:
            _write(ctx, fetcher, major + "." + minor, executable)
        return
    fail(
        "This build needs CPython {} on the PATH, or SOFIE_PYTHON set to the path of one (found: {}).".format(
            " or ".join(versions),
            ", ".join(seen) or "none",
        ),
    )

local_python = repository_rule(
    implementation = _local_python_impl,
    configure = True,
    doc = """Finds the machine's Python (SOFIE_PYTHON, else the first that fits on the PATH).

It fetches packages. It runs the build's programs too, unless they run on other machines:
SOFIE_EXECUTOR_PYTHON then says version and path of the Python there, 3.11:/usr/bin/python3.11.""",
)

def python_info(ctx, python):
    """Reads what local_python found.

    Args:
      ctx: repository context.
      python: label of local_python's python.json.

    Returns:
      A dict with the path of the Python whose pip fetches packages ("fetcher") and the
      interpreter's tag in the names of wheels ("tag", such as "cp311").
    """
    return json.decode(ctx.read(ctx.path(python)))
