"""Gaussian elimination, a column at a time: what Det and Inverse have in common."""

from __future__ import annotations

from collections.abc import Callable

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Strided, Tensor
from sofie.ops import arg_reduction
from sofie.ops.compaction import at


def pivot(b: Builder, matrix: Tensor, step: dims.Expr) -> Strided:
    """The row, from the step's on, whose element in the step's column is the largest."""
    number, rows = matrix.dtype, matrix.shape[-2]

    def element(outer: Index, inner: Index) -> Expr:
        (row,) = inner
        size = Call(number, "sofie::kernels::Abs({0})", (matrix.load((*outer, row, step)),))
        left = Select(number, compare("<", row, step), Literal(number, -1), size)
        return arg_reduction.value_at(left, row)

    place = Reduction(
        b,
        matrix.shape[:-2],
        [rows],
        Combine("ArgMax", number),
        element,
        lambda _: arg_reduction.place(),
        dtype.INT64,
        [matrix],
    )
    return place.strided()


def swapped(matrix: Tensor, row_of: Tensor, step: dims.Expr) -> Callable[[Index], Expr]:
    """An element of the matrix with the pivot's row and the step's exchanged."""
    number = matrix.dtype

    def element(index: Index) -> Expr:
        *outer, row, column = index
        up, down = compare("==", row, step), compare("==", row, at(row_of, *outer))
        there = matrix.load((*outer, at(row_of, *outer), column))
        here = matrix.load((*outer, step, column))
        return Select(number, up, there, Select(number, down, here, matrix.load(index)))

    return element
