"""Running sums and products: what CumSum and CumProd have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def running(name: str, *, is_product: bool, since: int) -> None:
    """Registers the operator."""

    @shape_rule(name, since=since)
    def shapes(node: Node) -> list[dims.Shape]:
        return [node.shape(0)]

    def check(node: Node) -> Iterator[str]:
        if node.known(1) is None:
            yield "an axis that depends on data"

    @operator(name, since=since, dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS, check=check)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        x, known = inputs[0], node.known(1)
        assert x is not None and known is not None
        number = dtype.wide(x.dtype)
        wide = x if x.dtype is number else elementwise.call(b, number, "{0}", x)
        out = b.output(number, x.shape)
        b.routine(
            "Scan",
            (number,),
            {"x": wide},
            {"out": out},
            _outer_axis_inner(b, x.shape, known[0]),
            {
                "product": is_product,
                "exclusive": node.attr_int("exclusive", 0) == 1,
                "reverse": node.attr_int("reverse", 0) == 1,
            },
        )
        return [out if number is x.dtype else elementwise.call(b, x.dtype, "{0}", out)]


def _outer_axis_inner(b: Builder, shape: dims.Shape, axis: dims.Expr) -> dict[str, dims.Expr]:
    """The tensor as [outer, axis, inner]; the axis may be known at run time only."""
    rank = len(shape)
    for low, high in ((-rank, axis), (axis, rank - 1)):
        message = f"{b.node}: the axis is out of range for rank {rank}"
        b.require(sympy.sympify(low), sympy.sympify(high), message)
    place = axis + rank * dims.IsNegative(axis)
    outer = inner = length = dims.ONE
    for position, extent in enumerate(shape):
        before = dims.IsNegative(position - place)
        after = dims.IsNegative(place - position)
        outer *= 1 + (extent - 1) * before
        inner *= 1 + (extent - 1) * after
        length *= 1 + (extent - 1) * (1 - before - after)
    return {"outer": outer, "axis": length, "inner": inner}
