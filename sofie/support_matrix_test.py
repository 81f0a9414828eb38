"""docs/support_matrix.md says what the registry says."""

import pathlib
from collections.abc import Iterable

from sofie import support_matrix
from sofie.ir.node import Node
from sofie.ops import registry

_PAGE = pathlib.Path("docs/support_matrix.md")


def test_page_is_current() -> None:
    assert _PAGE.read_text(encoding="utf-8") == support_matrix.matrix(), (
        "docs/support_matrix.md is out of date: tools/bazel run //sofie:support_matrix"
    )


def test_every_operator_is_a_row() -> None:
    rows = support_matrix.matrix().partition("| --- | --- | --- | --- |\n")[2].splitlines()
    names = [row[2:].split(" |")[0].partition("]")[0].lstrip("[") for row in rows]
    every = [f"{e.domain}.{e.name}".lstrip(".") for e in registry.every()]
    assert names == every
    assert len(rows) > 40


def test_reasons_are_the_messages() -> None:
    def check(node: Node) -> Iterable[str]:
        if node.attr_int("a", 0):
            yield "a is set"
        else:
            yield f"an input of rank {node.arity}, or more"

    assert list(support_matrix.reasons(check)) == ["a is set", "an input of rank …, or more"]
