"""Finds in CUDA sources what makes nvcc's objects differ from folder to folder.

nvcc gives entities with internal linkage that the device sees a name made of a hash of the absolute
path of the source. An anonymous namespace, a `static` kernel, a `static` device variable or one
that is `const` without being `inline` would put that hash into the object, which then has other
bytes in every folder.

    lint.py --output=REPORT FILE...

Writes an empty report and exits with 0, or says on standard error what is wrong and exits with 1.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Sequence

from absl import app, flags

_OUTPUT = flags.DEFINE_string("output", None, "File to write when nothing is wrong.", required=True)

_COMMENT_OR_LITERAL = re.compile(
    r"//(?:[^\n\\]|\\.)*"  # line comment, with continued lines
    r"|/\*.*?\*/"  # block comment
    r'|R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"'  # raw string
    r'|"(?:[^"\\\n]|\\.)*"'  # string
    r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)*'",  # character, but not a digit separator
    re.DOTALL,
)
_ANONYMOUS_NAMESPACE = re.compile(r"\bnamespace\s*(?:\[\[.*?\]\]\s*)?\{")
# The part of a declaration in which a storage class and an execution space stand.
_DECLARATION = re.compile(r"[^;{}=()]*\bstatic\b[^;{}=()]*[;{=(]")
_CONSTANT = re.compile(r"[^;{}=()]*\bconst(?:expr)?\b[^;{}=()]*[;{=(]")
_NOT_INTERNAL = re.compile(r"\b(?:static|inline|extern|operator)\b")  # static: reported as such
_KERNEL = re.compile(r"\b__global__\b")
_VARIABLE = re.compile(r"\b(?:__device__|__constant__|__managed__)\b")
_ALPAKA_STATIC = re.compile(r"\bALPAKA_STATIC_ACC_MEM_(?:GLOBAL|CONSTANT)\b")

_REASON = (
    "nvcc names its symbols by a hash of the absolute path, so that the object differs from folder "
    "to folder"
)


def _blank(match: re.Match[str]) -> str:
    """Leaves of a comment or literal its line breaks only."""
    return "\n" * match.group().count("\n") or " "


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Yields line number and message of each problem in the text of one source."""
    code = _COMMENT_OR_LITERAL.sub(_blank, text)
    found: list[tuple[int, str]] = []
    for match in _ANONYMOUS_NAMESPACE.finditer(code):
        found.append((match.start(), "anonymous namespace: give it a name"))
    for match in _DECLARATION.finditer(code):
        position = match.start() + match.group().index("static")
        declaration = match.group()
        if _KERNEL.search(declaration):
            found.append((position, "static kernel: put it into a named namespace, without static"))
        elif _VARIABLE.search(declaration) and not declaration.endswith("("):
            found.append((position, "static device variable: pass the value to the kernel"))
    for match in _CONSTANT.finditer(code):
        declaration = match.group()
        if (
            _VARIABLE.search(declaration)
            and not declaration.endswith("(")
            and not _NOT_INTERNAL.search(declaration)
        ):
            position = match.start() + declaration.index("const")
            found.append((position, "constant device variable: make it inline"))
    for match in _ALPAKA_STATIC.finditer(code):
        found.append((match.start(), "static device variable: pass the value to the kernel"))
    for position, message in sorted(found):
        yield code.count("\n", 0, position) + 1, f"{message} ({_REASON})"


def main(argv: Sequence[str]) -> None:
    messages = [
        f"{path}:{line}: {message}"
        for path in argv[1:]
        for line, message in problems(pathlib.Path(path).read_text(encoding="utf-8"))
    ]
    if messages:
        raise SystemExit("\n".join(messages))
    pathlib.Path(_OUTPUT.value).write_text("", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
