"""Reductions over axes: what the files of the Reduce operators have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32, FLOAT64, INT64, DType, wide
from sofie.ir.expr import Accumulator, Call, Expr, Index
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Dense, Reduction, Reshape, SplitAxes, Tensor
from sofie.ir.tensor import Index as TensorIndex
from sofie.ops.axes import from_front, named, operand_axes, require_axes, without
from sofie.ops.elementwise import rounded
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

# Dense layers that are kept on the chip: rows of a group, and widths of layers.
_FUSED_ROWS = (16, 32)
_WIDEST = 256
_WIDEST_INPUT = 512


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a reduction computes.

    Attributes:
      combine: joins two elements.
      number: the type to compute in, from that of the elements.
      prepare: what is combined, from an element; ``None`` is the element itself.
      finish: the result from the combined elements and their number; ``None`` likewise.
    """

    combine: str
    number: Callable[[DType], DType] = wide
    prepare: Callable[[Expr], Expr] | None = None
    finish: Callable[[Expr, dims.Expr], Expr] | None = None


def real(dtype: DType) -> DType:
    """float64 for integers, and at least float32."""
    return wide(dtype) if dtype.is_float else FLOAT64


def _is_fusable(dense: Dense, axes: Sequence[int]) -> bool:
    """True where ``launch.Dense`` covers the layers and the reduction of their last axis."""
    if not dense.is_pending or list(axes) != [dense.rank - 1] or dense.rank < 3:
        return False
    widths = [layer.outputs for layer in dense.layers]
    return (
        dense.dtype is FLOAT32
        and dense.shape[-1] in _FUSED_ROWS
        and len(widths) <= 4
        and all(w.is_Integer and int(w) % 8 == 0 and int(w) <= _WIDEST for w in widths)
        and bool(dense.source.shape[1].is_Integer)
        and int(dense.source.shape[1]) <= _WIDEST_INPUT
    )


def reduce_axes(node: Node) -> list[dims.Expr] | None:
    """The axes to reduce, sorted and from the front where they are numbers; None if not known."""
    rank = len(node.shape(0))
    axes = operand_axes(node)
    if axes is None:
        return None
    if not axes:
        everything = [] if node.attr_int("noop_with_empty_axes", 0) else range(rank)
        return [sympy.Integer(a) for a in everything]
    if not all(axis.is_Integer for axis in axes):
        return list(axes)
    return sorted(from_front(axis, rank) for axis in axes)


def _shapes(node: Node) -> list[dims.Shape | None]:
    axes, shape = reduce_axes(node), node.shape(0)
    if axes is None:
        return [None]
    hits = named(axes, len(shape))
    if node.attr_int("keepdims", 1):
        pairs = zip(hits, shape, strict=True)
        return [tuple(dims.Where(hit, dims.ONE, extent) for hit, extent in pairs)]
    return [without(shape, hits, len(shape) - len(axes))]


def _apart(x: Tensor, axes: Sequence[dims.Expr]) -> SplitAxes:
    """``x`` with twice as many axes: one half walks what stays, the other what is reduced."""
    pairs = list(zip(named(axes, x.rank), x.shape, strict=True))
    kept = [dims.Where(hit, dims.ONE, extent) for hit, extent in pairs]
    reduced = [dims.Where(hit, extent, dims.ONE) for hit, extent in pairs]
    return SplitAxes(x, kept, reduced)


def reduced_axes(b: Builder, x: Tensor, axes: Sequence[dims.Expr]) -> tuple[Tensor, list[int]]:
    """The tensor and its axes to reduce, all numbers; the others are those of the result."""
    require_axes(b, axes, x.rank)
    if all(axis.is_Integer for axis in axes):
        return x, [int(axis) for axis in axes]
    return _apart(x, axes), list(range(x.rank, 2 * x.rank))


def over_axes(b: Builder, x: Tensor, axes: Sequence[int], rule: Rule) -> Reduction:
    """``x`` with ``axes`` reduced away."""
    kept = [a for a in range(x.rank) if a not in axes]
    reduced = [x.shape[a] for a in axes]
    count, number = dims.product(reduced), rule.number(x.dtype)

    def element(outer: TensorIndex, inner: TensorIndex) -> Expr:
        index: list[dims.Expr] = [dims.ZERO] * x.rank
        for axis, i in zip([*kept, *axes], [*outer, *inner], strict=True):
            index[axis] = i
        value = x.load(tuple(index))
        if x.dtype is not number and not x.dtype.is_float:
            value = rounded(value, number)
        return value if rule.prepare is None else rule.prepare(value)

    def finish(value: Expr) -> Expr:
        return rounded(value if rule.finish is None else rule.finish(value, count), x.dtype)

    plain = rule.prepare is None and rule.combine in ("Sum", "Max")
    dense = x if isinstance(x, Dense) and plain and _is_fusable(x, axes) else None
    shape = [x.shape[a] for a in kept]
    combine = Combine(rule.combine, number)
    return Reduction(b, shape, reduced, combine, element, finish, x.dtype, [x], dense)


def square(value: Expr) -> Expr:
    """``value`` times itself."""
    return Call(wide(value.dtype), "{0} * {0}", (value,))


def magnitude(value: Expr) -> Expr:
    """The absolute value."""
    return Call(value.dtype, "sofie::kernels::Abs({0})", (value,))


def divide_by_count(value: Expr, count: dims.Expr) -> Expr:
    """The mean of ``count`` elements, from their sum; that of integers is rounded to zero."""
    number = Call(value.dtype, f"static_cast<{value.dtype.cpp}>({{0}})", (Index(INT64, count),))
    template = "{0} / {1}" if value.dtype.is_float else "sofie::kernels::Divide({0}, {1})"
    return Call(value.dtype, template, (value, number))


def square_root(value: Expr, _: dims.Expr) -> Expr:
    """The square root."""
    return Call(value.dtype, "sofie::kernels::Sqrt({0})", (value,))


def logarithm(value: Expr, _: dims.Expr) -> Expr:
    """The natural logarithm."""
    return Call(value.dtype, "sofie::kernels::Log({0})", (value,))


def log_sum_exp(value: Expr, _: dims.Expr) -> Expr:
    """The logarithm of the sum of exponentials, from what MaxSumExp combines."""
    parts = (Accumulator(value.dtype, "max"), Accumulator(value.dtype, "sum"))
    return Call(value.dtype, "sofie::kernels::LogSumExp({0}, {1})", parts)


def reduction(name: str, rule: Rule, *, dtypes: Iterable[DType]) -> None:
    """Registers a Reduce operator."""

    shape_rule(name)(_shapes)

    def check(node: Node) -> Iterator[str]:
        if reduce_axes(node) is None:
            yield "a number of axes that is not known at build time"

    @operator(name, since=1, dtypes=dtypes, check=check)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        x, axes = inputs[0], reduce_axes(node)
        assert x is not None and axes is not None
        source, fixed = reduced_axes(b, x, axes)
        return [Reshape(over_axes(b, source, fixed, rule), node.out_shape())]
