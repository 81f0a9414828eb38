"""GlobalMaxPool: https://onnx.ai/onnx/operators/onnx__GlobalMaxPool.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.reduction import Rule, over_axes
from sofie.ops.registry import operator


@operator("GlobalMaxPool", since=1, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The maximum over all spatial axes."""
    x = inputs[0]
    assert x is not None
    return [Reshape(over_axes(b, x, range(2, x.rank), Rule("Max")), node.out_shape())]
