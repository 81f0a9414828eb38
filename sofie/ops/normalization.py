"""Normalisations of rows by their own statistics: what their operators have in common.

Statistics are kept in float32 at least. Mean and variance are found together, the variance from
deviations from the mean, so that a mean far above the deviation costs no accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import INT64, DType, wide
from sofie.ir.expr import Accumulator, Call, Expr, Literal
from sofie.ir.expr import Index as IndexValue
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Broadcast, Index, Reduction, Reshape, Strided, Tensor
from sofie.ops.elementwise import rounded

# What becomes of a normalised element, given its index.
Affine = Callable[[Expr, Index], Expr]


def trailing_axes(node: Node) -> list[int]:
    """The axes from the attribute ``axis`` on."""
    return list(range(node.axis(-1), len(node.shape(0))))


def scaled(scale: Tensor, bias: Tensor | None, shape: dims.Shape) -> Affine:
    """``value * scale + bias``, both stretched to ``shape``."""
    factors = Broadcast(scale, shape)
    terms = None if bias is None else Broadcast(bias, shape)

    def affine(value: Expr, index: Index) -> Expr:
        if terms is None:
            return Call(value.dtype, "{0} * {1}", (value, factors.load(index)))
        parts = (value, factors.load(index), terms.load(index))
        return Call(value.dtype, "{0} * {1} + {2}", parts)

    return affine


def per_channel(scale: Tensor, bias: Tensor, channel: Callable[[Index], dims.Expr]) -> Affine:
    """``value * scale[c] + bias[c]`` with ``c = channel(index)``."""

    def affine(value: Expr, index: Index) -> Expr:
        at = (channel(index),)
        parts = (value, scale.load(at), bias.load(at))
        return Call(value.dtype, "{0} * {1} + {2}", parts)

    return affine


def standardize(
    b: Builder, x: Tensor, axes: Sequence[int], epsilon: float, affine: Affine, dtype: DType
) -> Strided:
    """``affine((x - mean) / sqrt(variance + epsilon))`` over rows along ``axes``."""
    number = wide(x.dtype)

    def finish(value: Expr, index: Index) -> Expr:
        parts = (value, *moments(number), Literal(number, epsilon))
        template = "({0} - {1}) * sofie::kernels::InverseSqrt({2} + {3})"
        return rounded(affine(Call(number, template, parts), index), dtype)

    combine = Combine("MeanVariance", number)
    return b.normalize(x.shape, axes, combine, x, finish, dtype)


def divide_by_rms(
    b: Builder, x: Tensor, axes: Sequence[int], epsilon: float, affine: Affine, dtype: DType
) -> Strided:
    """``affine(x / sqrt(mean of squares + epsilon))`` over rows along ``axes``."""
    number = wide(x.dtype)
    count = dims.product([x.shape[a] for a in axes])

    def finish(value: Expr, index: Index) -> Expr:
        parts = (value, Accumulator(number), IndexValue(INT64, count), Literal(number, epsilon))
        mean = f"{{1}} / static_cast<{number.cpp}>({{2}})"
        template = f"{{0}} * sofie::kernels::InverseSqrt({mean} + {{3}})"
        return rounded(affine(Call(number, template, parts), index), dtype)

    def square(value: Expr) -> Expr:
        return Call(number, "{0} * {0}", (value,))

    return b.normalize(x.shape, axes, Combine("Sum", number), x, finish, dtype, square)


def moments(number: DType) -> tuple[Expr, Expr]:
    """Mean and (population) variance of a row whose combine is MeanVariance."""
    return Accumulator(number, "mean"), Accumulator(number, "variance()")


def statistic(
    b: Builder,
    x: Tensor,
    axes: Sequence[int],
    finish: Callable[[Expr, Expr], Expr],
    shape: dims.Shape,
    dtype: DType,
) -> Tensor:
    """``finish(mean, variance)`` of every row along ``axes``, as a tensor of its own."""
    number = wide(x.dtype)
    kept = [a for a in range(x.rank) if a not in axes]

    def element(outer: Index, inner: Index) -> Expr:
        index: list[dims.Expr] = [dims.ZERO] * x.rank
        for axis, i in zip([*kept, *axes], [*outer, *inner], strict=True):
            index[axis] = i
        return x.load(tuple(index))

    rows = Reduction(
        b,
        [x.shape[a] for a in kept],
        [x.shape[a] for a in axes],
        Combine("MeanVariance", number),
        element,
        lambda _: rounded(finish(*moments(number)), dtype),
        dtype,
        [x],
    )
    return Reshape(rows, shape)


def optional_statistics(
    node: Node, b: Builder, x: Tensor, axes: Sequence[int], epsilon: float
) -> list[Tensor | None]:
    """The outputs Mean and InvStdDev of a layer normalisation, where something reads them."""
    number = wide(x.dtype)

    def inverse(_: Expr, variance: Expr) -> Expr:
        parts = (variance, Literal(number, epsilon))
        return Call(number, "sofie::kernels::InverseSqrt({0} + {1})", parts)

    finishes: list[Callable[[Expr, Expr], Expr]] = [lambda mean, _: mean, inverse]
    return [
        statistic(b, x, axes, finish, node.out_shape(position), node.out_dtype(position))
        if node.is_used(position)
        else None
        for position, finish in enumerate(finishes, 1)
    ]


def with_skip(node: Node, b: Builder, terms: Sequence[Tensor | None], position: int) -> Tensor:
    """The sum of a tensor with others that are stretched to its shape.

    Args:
      node: the operator.
      b: where it is computed.
      terms: the tensor, then what is added to it; absent ones are left out.
      position: the node's output that is the sum.
    """
    x, *others = (t for t in terms if t is not None)
    for other in others:
        b.require_broadcast(other.shape, x.shape)
    stretched = [x, *(Broadcast(t, x.shape) for t in others)]
    template = " + ".join(f"{{{i}}}" for i in range(len(stretched)))

    def element(index: Index) -> Expr:
        return Call(x.dtype, template, tuple(t.load(index) for t in stretched))

    total = b.lazy(x.dtype, x.shape, stretched, element)
    if node.is_used(position):
        total.share(1)
    return total
