"""Writes docs/support_matrix.md: the operators that can be compiled, as the registry knows them.

    tools/bazel run //sofie:support_matrix

A test fails while the file says anything else than the registry does.
"""

from __future__ import annotations

import ast
import inspect
import os
import pathlib
import textwrap
from collections.abc import Iterator, Sequence

from absl import app, flags

from sofie.ir import dtype
from sofie.ir.dtype import DType
from sofie.ops import registry
from sofie.ops.registry import Check, Operator

_OUTPUT = flags.DEFINE_string("output", None, "File to write; docs/support_matrix.md by default.")

_GROUPS = {
    "floats": dtype.FLOATS,
    "signed": dtype.SIGNED,
    "integers": dtype.INTEGERS,
    "numbers": dtype.NUMBERS,
    "all": dtype.ALL,
}

_HEAD = """\
# Supported operators

<!-- Written by: tools/bazel run //sofie:support_matrix -->

What is listed here runs on every backend, at all legal sizes; a model with anything else is refused
as a whole, with a message for each node in the way. *Types* are those of the first input. *Refused*
is what a node may not have, in the words of the message.

Every dimension of every input may be symbolic. Shapes, axes, indices of slices and other integer
operands may be constants, computed from sizes (Shape, Gather, Concat, arithmetic), or small tensors
whose elements are [read at run time](dynamic_shapes.md).

{legend}

| Operator | Opsets | Types | Refused |
| --- | --- | --- | --- |
"""


def matrix() -> str:
    """The page's text."""
    legend = ";\n".join(f"*{name}*: {_listed(types)}" for name, types in _GROUPS.items())
    return _HEAD.format(legend=legend + ".") + "".join(
        _row(operator) for operator in registry.every()
    )


def _row(operator: Operator) -> str:
    name = operator.name
    if operator.domain:
        name = f"{operator.domain}.{name}"
    else:
        name = f"[{name}](https://onnx.ai/onnx/operators/onnx__{name}.html)"
    until = "" if operator.until is None else f" to {operator.until}"
    opsets = f"{operator.since}{until or ' and later'}"
    refused = "; ".join(reasons(operator.check))
    return f"| {name} | {opsets} | {_types(operator.dtypes)} | {refused} |\n"


def _types(dtypes: frozenset[DType] | None) -> str:
    if dtypes is None:
        return ""
    for name, types in _GROUPS.items():
        if types == dtypes:
            return f"*{name}*"
    return _listed(dtypes)


def _listed(dtypes: frozenset[DType]) -> str:
    return ", ".join(sorted((t.name for t in dtypes), key=_type_order))


def _type_order(name: str) -> tuple[str, int]:
    """float32 before float64, int8 before int16."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)


def reasons(check: Check) -> Iterator[str]:
    """The reasons that a check function yields, with … for what depends on the node."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(check)))):
        if not isinstance(node, ast.Yield):
            continue
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
        elif isinstance(node.value, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.value.values]
            yield "".join(str(part) for part in parts)
        else:
            raise ValueError(f"{inspect.getsourcefile(check)}: yield a string or an f-string")


def main(argv: Sequence[str]) -> None:
    """Writes the page."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    workspace = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    output = workspace / (_OUTPUT.value or "docs/support_matrix.md")
    output.write_text(matrix(), encoding="utf-8")
    print(f"Wrote {output}.")


if __name__ == "__main__":
    app.run(main)
