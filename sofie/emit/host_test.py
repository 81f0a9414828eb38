"""Versions that compilers state."""

import platform

from sofie.emit.host import versions

_PYTHON = f"CPython {platform.python_version()}"


def test_gcc_with_glibc() -> None:
    macros = """#define __GNUC__ 12
#define __VERSION__ "12.2.0"
#define __GLIBC__ 2
#define __GLIBC_MINOR__ 36
"""
    assert versions(macros) == {
        "compiler": "GCC 12.2.0",
        "libc": "glibc 2.36",
        "python": _PYTHON,
    }


def test_clang_with_another_library() -> None:
    macros = """#define __VERSION__ "Clang 17.0.6"
#define __clang_version__ "17.0.6 "
"""
    assert versions(macros) == {"compiler": "Clang 17.0.6", "python": _PYTHON}


def test_no_compiler_asked() -> None:
    assert versions("") == {"python": _PYTHON}
