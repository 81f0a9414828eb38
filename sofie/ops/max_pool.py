"""MaxPool: https://onnx.ai/onnx/operators/onnx__MaxPool.html"""

from collections.abc import Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOATS, INT8, INT64, UINT8
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops import pooling
from sofie.ops.registry import operator
from sofie.ops.spatial import Window, kernel_shape, window

# NaN is the largest of a window that has one.
_IS_LARGEST = "({0} == {1}) || sofie::kernels::IsNaN({0})"

pooling.infer("MaxPool")


@operator("MaxPool", since=1, dtypes=FLOATS | {INT8, UINT8}, check=pooling.check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A maximum over every window; elements beyond the input never win."""
    x = inputs[0]
    assert x is not None
    taps = window(node, kernel_shape(node))
    largest = pooling.pool(b, x, taps, "Max", pooling.lowest(x.dtype))
    if not node.is_used(1):
        return [largest]
    x.share(1)
    largest.share(1)
    column_major = node.attr_int("storage_order", 0) == 1
    return [largest, _indices(b, x, taps, largest, column_major)]


def _indices(b: Builder, x: Tensor, taps: Window, largest: Tensor, column_major: bool) -> Tensor:
    """Where in the input, flattened, the first of the largest elements of every window stands."""
    strides = dims.packed_strides(taps.kernel, range(len(taps.kernel)))
    none = Literal(INT64, 2**62)

    def tap(outer: Index, inner: Index) -> Expr:
        position = taps.position(outer[2:], inner)
        number = sum((t * s for t, s in zip(inner, strides, strict=True)), dims.ZERO)
        value = x.load((*outer[:2], *position))
        found = Call(BOOL, _IS_LARGEST, (value, largest.load(outer)))
        here = Select(INT64, found, IndexExpr(INT64, number), none)
        inside = taps.inside(position)
        return here if inside is None else Select(INT64, inside, here, none)

    rule = Combine("Min", INT64)
    first = Reduction(
        b, largest.shape, taps.kernel, rule, tap, lambda value: value, INT64, [x, largest]
    )
    extents = x.shape[2:]
    order = tuple(range(len(extents)))
    within = dims.packed_strides(extents, order[::-1] if column_major else order)

    def element(index: Index) -> Expr:
        number = Indirect(first.load(index))
        inner = []
        for extent, stride in zip(taps.kernel, strides, strict=True):
            inner.append(dims.FloorMod(dims.FloorDiv(number, stride), sympy.sympify(extent)))
        position = taps.position(index[2:], inner)
        plane = (index[0] * x.shape[1] + index[1]) * dims.product(extents)
        flat = sum((i * s for i, s in zip(position, within, strict=True)), plane)
        return IndexExpr(INT64, flat)

    return b.lazy(INT64, largest.shape, [first], element)
