"""What the machine contributes to a build, for the manifest: everything else is pinned by hash."""

from __future__ import annotations

import platform
import re


def versions(compiler_macros: str) -> dict[str, str]:
    """Names and versions of compiler, C library and Python.

    Args:
      compiler_macros: ``#define`` lines, as ``g++ -E -dM`` prints them for a header of the standard
        library; empty where no compiler was asked.
    """
    macros = dict(re.findall(r"^#define (\w+) (.*)$", compiler_macros, re.MULTILINE))
    result: dict[str, str] = {}
    if "__clang_version__" in macros:
        result["compiler"] = "Clang " + macros["__clang_version__"].strip('" ')
    elif "__VERSION__" in macros:
        result["compiler"] = "GCC " + macros["__VERSION__"].strip('"')
    if "__GLIBC__" in macros:
        result["libc"] = f"glibc {macros['__GLIBC__']}.{macros['__GLIBC_MINOR__']}"
    result["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    return result
