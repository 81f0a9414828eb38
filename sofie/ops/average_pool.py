"""AveragePool: https://onnx.ai/onnx/operators/onnx__AveragePool.html"""

from collections.abc import Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import pooling
from sofie.ops.elementwise import rounded
from sofie.ops.registry import operator
from sofie.ops.spatial import Window, kernel_shape, window

pooling.infer("AveragePool")


@operator("AveragePool", since=7, dtypes=dtype.FLOATS, check=pooling.check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The sum over every window by the number of elements in it, pads among them or not."""
    x = inputs[0]
    assert x is not None
    taps = window(node, kernel_shape(node))
    total = pooling.pool(b, x, taps, "Sum", 0)
    with_pads = node.attr_int("count_include_pad", 0) == 1

    def element(index: Index) -> Expr:
        value = total.load(index)
        if all(taps.in_bounds):
            value = _divide(value, dims.product(taps.kernel))
        else:
            for axis, out in enumerate(index[2:]):
                value = _divide(value, _count(taps, axis, out, with_pads))
        return rounded(value, x.dtype)

    return [b.lazy(x.dtype, total.shape, [total], element)]


def _count(taps: Window, axis: int, out: dims.Expr, with_pads: bool) -> dims.Expr:
    """How many positions of a window lie in the input, or in the input and its pads."""
    if taps.in_bounds[axis]:
        return taps.kernel[axis]
    start = out * taps.strides[axis] - taps.before[axis]
    step = sympy.Integer(taps.dilations[axis])

    def below(limit: dims.Expr) -> dims.Expr:
        """The number of positions before a limit."""
        positions = dims.FloorDiv(limit - start + step - 1, step)
        return sympy.Min(sympy.Max(positions, dims.ZERO), taps.kernel[axis])

    end = taps.extents[axis]
    return below(end + taps.after[axis]) if with_pads else below(end) - below(dims.ZERO)


def _divide(value: Expr, count: dims.Expr) -> Expr:
    number = Call(value.dtype, f"static_cast<{value.dtype.cpp}>({{0}})", (IndexExpr(None, count),))
    return Call(value.dtype, "{0} / {1}", (value, number))
