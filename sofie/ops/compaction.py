"""Positions that fulfil a condition: what NonZero, Compress and Unique have in common.

How many there are the host reads; then a TopK of the marks gives where they are, for of equal
elements it takes those with the lowest index first.
"""

from __future__ import annotations

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor


def positions(node: Node, b: Builder, marks: Tensor) -> Tensor:
    """Where a list of bytes that are 0 or 1 has ones, ascending; ``node.counted()`` of them."""
    marks.share(1)

    def element(_: Index, inner: Index) -> Expr:
        return Call(dtype.INT64, "static_cast<int64_t>({0})", (marks.load(inner),))

    total = Reduction(
        b,
        (),
        marks.shape,
        Combine("Sum", dtype.INT64),
        element,
        lambda value: value,
        dtype.INT64,
        [marks],
    )
    count = node.counted()
    b.read([(f"{node.label}.count", total, (count,))])
    _, found = b.topk(marks, 0, count, True, True, (False, True))
    assert found is not None
    return found


def at(tensor: Tensor, *index: dims.Expr) -> Indirect:
    """An element of an integer tensor as an index."""
    return Indirect(tensor.load(tuple(index)))
