"""Scatter operators: what their files have in common."""

from __future__ import annotations

from collections.abc import Iterator

from sofie.ir.dtype import BOOL
from sofie.ir.node import Node
from sofie.ops.indexing import check_indices

_COMBINES = {"none": "Replace", "add": "Sum", "mul": "Product", "max": "Max", "min": "Min"}


def check(node: Node) -> Iterator[str]:
    """What no scatter supports."""
    yield from check_indices(node)
    reduction = node.attr_string("reduction", "none")
    if reduction not in _COMBINES:
        yield f"the reduction {reduction!r}"
    elif reduction != "none" and node.dtype(0) is BOOL:
        yield f"the reduction {reduction!r} of bool"


def combine(node: Node) -> str:
    """The combine of the node's ``reduction``."""
    return _COMBINES[node.attr_string("reduction", "none")]
