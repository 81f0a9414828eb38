"""The macro that runs pytest as a Bazel test."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, srcs, deps = [], args = [], **kwargs):
    """Runs pytest on the tests in `srcs`.

    Modules are imported by their path from the root of the workspace. A file without a test fails,
    so that a test never passes because nothing was collected.

    Args:
      name: name of the target.
      srcs: the files with tests, and their conftest.py where there is one.
      deps: py_library targets.
      args: options for pytest.
      **kwargs: further attributes of py_test.
    """
    py_test(
        name = name,
        srcs = srcs + [str(Label("//rules/private:pytest_main.py"))],
        args = args + ["$(rootpaths {})".format(src) for src in srcs if not src.endswith("conftest.py")],
        main = str(Label("//rules/private:pytest_main.py")),
        deps = deps + [str(Label("@pypi//:pytest"))],
        **kwargs
    )
