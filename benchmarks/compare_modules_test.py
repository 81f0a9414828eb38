"""Benchmarks that run from an archive, where of this repository only what they name is."""

import ast
import pathlib
from collections.abc import Iterator

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_OURS = {"benchmarks", "models", "sofie"}


def _imports(path: pathlib.Path) -> Iterator[str]:
    """Modules that a file imports, and what may be modules of packages that it imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("program", ["compare_attention", "compare_gpu"])
def test_all_imported_modules_are_there(program: str) -> None:
    seen = set[pathlib.Path]()
    wanted = [_ROOT / f"benchmarks/{program}.py"]
    while wanted:
        path = wanted.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imports(path):
            *package, module = name.split(".")
            if name.split(".")[0] not in _OURS:
                continue
            folder = _ROOT.joinpath(*package)
            found = [folder / f"{module}.py", folder / module / "__init__.py"]
            there = [file for file in found if file.is_file()]
            is_package = (folder / module).is_dir()
            is_name = folder.with_suffix(".py").is_file()
            assert there or is_package or is_name, (
                f"{path} imports {name}, which is not in the archive"
            )
            wanted += there
    assert len(seen) > 5
