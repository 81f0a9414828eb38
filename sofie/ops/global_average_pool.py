"""GlobalAveragePool: https://onnx.ai/onnx/operators/onnx__GlobalAveragePool.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.reduction import Rule, divide_by_count, over_axes
from sofie.ops.registry import operator


@operator("GlobalAveragePool", since=1, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The mean over all spatial axes."""
    x = inputs[0]
    assert x is not None
    mean = over_axes(b, x, range(2, x.rank), Rule("Sum", finish=divide_by_count))
    return [Reshape(mean, node.out_shape())]
