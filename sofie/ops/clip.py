"""Clip: https://onnx.ai/onnx/operators/onnx__Clip.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator("Clip", since=6, until=10, dtypes=dtype.FLOATS)
def lower_attributes(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The limits are attributes."""
    (x,) = elementwise.given(inputs)
    low = elementwise.scalar(x.dtype, node.attr_float("min", -3.4028234663852886e38))
    high = elementwise.scalar(x.dtype, node.attr_float("max", 3.4028234663852886e38))
    return [elementwise.call(b, x.dtype, "sofie::kernels::Clip({0}, {1}, {2})", x, low, high)]


@operator("Clip", since=11, dtypes=dtype.NUMBERS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The limits are tensors of one element; either may be absent."""
    x, low, high = (*inputs, None, None)[:3]
    assert x is not None
    limits = [
        (function, Reshape(limit, ()))
        for function, limit in (("AtLeast", low), ("AtMost", high))
        if limit is not None
    ]

    def element(index: Index) -> Expr:
        value = x.load(index)
        for function, limit in limits:
            template = f"sofie::kernels::{function}({{0}}, {{1}})"
            value = Call(x.dtype, template, (value, limit.load(())))
        return value

    return [b.lazy(x.dtype, x.shape, [x, *(limit for _, limit in limits)], element)]
