"""Flatten: https://onnx.ai/onnx/operators/onnx__Flatten.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.registry import operator


@operator("Flatten", since=1, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view under the inferred shape."""
    x = inputs[0]
    assert x is not None
    return [Reshape(x, node.out_shape())]
