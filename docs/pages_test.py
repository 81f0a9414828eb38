"""The pages show what is compiled and run, and link to what exists.

A C++ block is a part of snippets/*.cc, which marks it with `// [name]` and `// [/name]`, or, like
other code, of the file that it names. tools/snippets runs the shell commands.
"""

import pathlib
import re
import textwrap

import pytest

_ROOT = pathlib.Path(".")
_PAGES = sorted([*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md")])
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REGION = re.compile(r"^ *// \[(\w+)\]\n(.*?)^ *// \[/\1\]$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^]]*\]\(([^)#:]+)(?:#[^)]*)?\)")
# What a block may be: its first word.
_KINDS = {"sh", "cpp", "starlark", "ini", "python", "text"}


def _regions() -> dict[str, str]:
    found = {}
    for path in _ROOT.glob("docs/snippets/*.cc"):
        for name, body in _REGION.findall(path.read_text(encoding="utf-8")):
            found[name] = textwrap.dedent(body)
    return found


def _blocks(page: pathlib.Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def test_all_pages_are_here() -> None:
    names = {page.name for page in _PAGES}
    assert {"README.md", "CONTRIBUTING.md", "architecture.md", "support_matrix.md"} <= names
    assert len(_regions()) >= 5


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_cpp_is_compiled(page: pathlib.Path) -> None:
    compiled = list(_regions().values())
    for kind, body in _blocks(page):
        assert kind.split()[0] in _KINDS, f"{page}: a block of kind {kind!r}"
        if kind.startswith("cpp") and "from=" not in kind:
            assert body in compiled, f"{page}: not in docs/snippets:\n{body}"


def test_every_snippet_is_shown() -> None:
    shown = {body for page in _PAGES for kind, body in _blocks(page) if kind == "cpp"}
    assert [name for name, body in _regions().items() if body not in shown] == []


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_other_code_is_a_file(page: pathlib.Path) -> None:
    """Blocks that name a file are parts of it, and Python and Starlark blocks name one."""
    for kind, body in _blocks(page):
        language, *options = kind.split()
        quoted = [o.removeprefix("from=") for o in options if o.startswith("from=")]
        if language in ("python", "starlark", "ini"):
            assert quoted, f"{page}: {kind!r} has no from="
        for path in quoted:
            assert body in (_ROOT / path).read_text(encoding="utf-8"), f"{page}: not in {path}"


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_links_between_pages(page: pathlib.Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target
        if path.suffix in (".md", ".svg"):
            assert path.exists(), f"{page}: {target}"
