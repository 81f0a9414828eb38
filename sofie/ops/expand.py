"""Expand: https://onnx.ai/onnx/operators/onnx__Expand.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Tensor
from sofie.ops.registry import operator


@operator("Expand", since=8, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view with stride 0 along the stretched axes."""
    x = inputs[0]
    assert x is not None
    b.require_broadcast(x.shape, node.out_shape())
    return [Broadcast(x, node.out_shape())]
