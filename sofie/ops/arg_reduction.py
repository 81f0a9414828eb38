"""Where a row has its largest or smallest element: what ArgMax, ArgMin and Hardmax share."""

from __future__ import annotations

from collections.abc import Sequence

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import INT64, NUMBERS, DType, wide
from sofie.ir.expr import Accumulator, Call, Expr, Index
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index as TensorIndex
from sofie.ir.tensor import Reduction, Reshape, Tensor
from sofie.ops.registry import operator


def value_at(value: Expr, place: dims.Expr) -> Expr:
    """An element and its place in the row: what is combined. Of equal ones the first wins."""
    number = wide(value.dtype)
    pair = DType(f"{number.name},int64", f"sofie::kernels::ValueIndex<{number.cpp}>", "", 16)
    template = f"sofie::kernels::ValueAt<{number.cpp}>({{0}}, {{1}})"
    return Call(pair, template, (value, Index(INT64, place)))


def place() -> Expr:
    """The place of the row's winner."""
    return Accumulator(INT64, "index")


def arg_reduction(name: str) -> None:
    """Registers ArgMax or ArgMin; the combine is called as the operator is."""

    @operator(name, since=1, dtypes=NUMBERS)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        """With ``select_last_index`` places are counted backwards, below zero."""
        x = inputs[0]
        assert x is not None
        axis = node.axis(0)
        sign = -1 if node.attr_int("select_last_index", 0) else 1
        if x.rank == 0:
            return [b.known((), [dims.ZERO])]
        b.require(dims.ONE, x.shape[axis], f"{node.label}: the axis has no elements")

        def element(outer: TensorIndex, inner: TensorIndex) -> Expr:
            index = (*outer[:axis], inner[0], *outer[axis:])
            return value_at(x.load(index), sign * inner[0])

        def finish(_: Expr) -> Expr:
            return place() if sign == 1 else Call(INT64, "-{0}", (place(),))

        kept = [d for a, d in enumerate(x.shape) if a != axis]
        combine = Combine(name, wide(x.dtype))
        rows = Reduction(b, kept, [x.shape[axis]], combine, element, finish, INT64, [x])
        return [Reshape(rows, node.out_shape())]
