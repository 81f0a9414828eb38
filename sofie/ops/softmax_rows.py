"""Softmax and its relatives: operators that look at whole rows of a tensor.

From opset 13 on a row lies along one axis; before, the tensor is seen as a matrix whose rows are
all axes from ``axis`` on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Accumulator, Call, Expr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator

# Axes of a row.
RowAxes = Callable[[Node], list[int]]


def one_axis(node: Node) -> list[int]:
    """The definition of opset 13."""
    return [node.axis(-1)]


def trailing_axes(node: Node) -> list[int]:
    """The definition of opset 1."""
    rank = len(node.shape(0))
    axis = node.attr_int("axis", 1)
    if not -rank <= axis <= rank:
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return list(range(axis + rank if axis < 0 else axis, rank))


def exponentials(name: str, template: str) -> None:
    """Registers an operator on an element, its row's maximum and the sum of exponentials.

    ``{0}``, ``{1}`` and ``{2}`` in ``template`` are these; the exponentials are those of the
    elements less the maximum. Both are found in one pass.
    """

    def lower_rows(b: Builder, x: Tensor, axes: Sequence[int]) -> list[Tensor]:
        wide = dtype.wide(x.dtype)

        def finish(value: Expr, _: Index) -> Expr:
            parts = (value, Accumulator(wide, "max"), Accumulator(wide, "sum"))
            return Call(x.dtype, template, parts)

        combine = Combine("MaxSumExp", wide)
        return [b.normalize(x.shape, axes, combine, x, finish, x.dtype)]

    on_rows(name, lower_rows)


def on_rows(
    name: str, lower_rows: Callable[[Builder, Tensor, Sequence[int]], list[Tensor]]
) -> None:
    """Registers an operator that lowers a tensor, given the axes of its rows."""

    def register(since: int, until: int | None, row_axes: RowAxes) -> None:
        @operator(name, since=since, until=until, dtypes=dtype.FLOATS)
        def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
            x = inputs[0]
            assert x is not None
            return lower_rows(b, x, row_axes(node))

    register(1, 12, trailing_axes)
    register(13, None, one_axis)
