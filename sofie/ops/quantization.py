"""Quantised numbers: what the files of their operators have in common.

    x = (q - zero_point) * scale          q = round(x / scale) + zero_point, saturated

Scale and zero point are one number, one for each index of an axis, or one for each block along it:
https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import DType
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Reshape, Tensor
from sofie.ops.matmul import multiply

# Gives the scale or the zero point that belongs to an element.
Parameter = Callable[[Index], Expr]

# The longest sum of products of two 8-bit numbers, zero points subtracted, that float32 holds
# exactly: 258 * 255 * 255 < 2^24. float64 holds all that can be.
_LONGEST_IN_FLOAT32 = 258


def check_blocks(node: Node) -> Iterator[str]:
    """What no quantisation here supports of a scale's shape."""
    shape, block = node.shape(1), node.attr_int("block_size", 0)
    if block < 0:
        yield "a negative block_size"
    elif len(shape) > 1 and (not block or len(shape) != len(node.shape(0))):
        yield f"a scale of rank {len(shape)} that is not one of blocks"


def parameter(node: Node, b: Builder, values: Tensor, x: Tensor) -> Parameter:
    """Scales or zero points of ``x``: one number, one along ``axis``, or one for each block."""
    axis = node.attr_int("axis", 1) % max(x.rank, 1)
    if values.rank <= 1 or all(extent == 1 for extent in values.shape):
        return along(b, values, axis, x.shape)
    size = sympy.Integer(node.attr_int("block_size", 0))
    for a, (have, want) in enumerate(zip(values.shape, x.shape, strict=True)):
        blocks = dims.FloorDiv(want + size - 1, size) if a == axis else want
        b.require_equal(have, blocks, f"numbers of blocks and of elements along axis {a}")

    def load(index: Index) -> Expr:
        inner = list(index)
        inner[axis] = dims.FloorDiv(index[axis], size)
        return values.load(tuple(inner))

    return load


def saturated(to: DType, value: Expr, zero_point: Expr | None) -> Expr:
    """``value`` rounded to the nearest integer, halves to even, as a quantised number."""
    low, high = to.limits
    zero = Literal(to, 0) if zero_point is None else zero_point
    number = value.dtype.cpp
    template = (
        f"static_cast<{to.cpp}>(sofie::kernels::Quantized("
        f"{{0}}, static_cast<{number}>({{1}}), {{2}}, {{3}}))"
    )
    wide = dtype.wide(value.dtype)
    return Call(to, template, (value, zero, Literal(wide, low), Literal(wide, high)))


def exact(terms: dims.Expr) -> DType:
    """The type in which a sum of so many products of 8-bit numbers is exact."""
    short = terms.is_Integer and int(terms) <= _LONGEST_IN_FLOAT32
    return dtype.FLOAT32 if short else dtype.FLOAT64


def centred(b: Builder, to: DType, x: Tensor, zero_point: Parameter | None) -> Tensor:
    """``x - zero_point`` as floating-point numbers, which hold it exactly."""

    def element(index: Index) -> Expr:
        value = x.load(index)
        if zero_point is None:
            return Call(to, f"static_cast<{to.cpp}>({{0}})", (value,))
        template = (
            f"static_cast<{to.cpp}>(static_cast<int32_t>({{0}}) - static_cast<int32_t>({{1}}))"
        )
        return Call(to, template, (value, zero_point(index)))

    return b.lazy(to, x.shape, [x], element)


def as_int32(value: Expr) -> Expr:
    """An exact sum as ONNX has it: modulo 2^32."""
    return Call(dtype.INT32, "static_cast<int32_t>(static_cast<int64_t>({0}))", (value,))


def requantized(
    to: DType, total: Expr, scales: tuple[Expr, Expr, Expr], zero_point: Expr | None
) -> Expr:
    """``total * (scale_a * scale_b / scale_y)`` as a quantised number, computed in float32."""
    template = "static_cast<float>({0}) * ({1} * {2} / {3})"
    return saturated(to, Call(dtype.FLOAT32, template, (total, *scales)), zero_point)


def along(b: Builder, values: Tensor, axis: int, shape: dims.Shape) -> Parameter:
    """One number, one for each index of an axis of ``shape``, or as many as stretch to it."""
    if values.rank == 1:
        after = -1 - axis if axis < 0 else len(shape) - 1 - axis
        values = Reshape(values, (*values.shape, *[dims.ONE] * after))
    surplus = max(0, values.rank - len(shape))
    for extent in values.shape[:surplus]:
        b.require_equal(extent, dims.ONE, "numbers of scales and of elements")
    if surplus:
        values = Reshape(values, values.shape[surplus:])
    b.require_broadcast(values.shape, shape)
    return Broadcast(values, shape).load


def product(
    b: Builder,
    left: Tensor,
    right: Tensor,
    left_zero: Tensor | None,
    right_zero: Tensor | None,
    shape: dims.Shape,
) -> Tensor:
    """``(left - left_zero) @ (right - right_zero)``, exact."""
    number = exact(left.shape[-1])
    rows = None if left_zero is None else along(b, left_zero, -2, left.shape)
    columns = None if right_zero is None else along(b, right_zero, -1, right.shape)
    a = centred(b, number, left, rows)
    c = centred(b, number, right, columns)
    return multiply(b, a, c, shape)
