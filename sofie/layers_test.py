"""The generator's packages import each other in one direction only; see docs/architecture.md."""

import ast
import pathlib
from collections.abc import Iterator

import pytest

# Each may import itself and what stands before it.
_LAYERS = ("ir", "ops", "importer", "passes", "plan", "emit")


def _modules(layer: str) -> list[pathlib.Path]:
    files = pathlib.Path("sofie", layer).glob("*.py")
    return sorted(f for f in files if not f.name.endswith("_test.py"))


def _imports(module: pathlib.Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", _LAYERS)
def test_imports_go_one_way(layer: str) -> None:
    modules = _modules(layer)
    assert modules
    allowed = _LAYERS[: _LAYERS.index(layer) + 1]
    for module in modules:
        for name in _imports(module):
            root, _, rest = name.partition(".")
            if root == "sofie" and rest.split(".")[0] in _LAYERS:
                assert rest.split(".")[0] in allowed, f"{module} imports {name}"
