"""Reshape: https://onnx.ai/onnx/operators/onnx__Reshape.html

The target shape, with 0 and -1 resolved, is the output's inferred shape.
"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.registry import operator


@operator("Reshape", since=5, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view; sizes under which the elements do not fit are refused at run time."""
    x = inputs[0]
    assert x is not None
    shape = node.out_shape()
    have, want = dims.product(x.shape), dims.product(shape)
    if not dims.same(have, want):
        b.require(have, want, f"{node.label}: Reshape of {{low}} elements into {{high}}")
        b.require(want, have, f"{node.label}: Reshape of {{high}} elements into {{low}}")
    return [Reshape(x, shape)]
