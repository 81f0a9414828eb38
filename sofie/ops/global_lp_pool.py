"""GlobalLpPool: https://onnx.ai/onnx/operators/onnx__GlobalLpPool.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.norms import power, root
from sofie.ops.reduction import Rule, over_axes
from sofie.ops.registry import operator


@operator("GlobalLpPool", since=2, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The p-norm over all spatial axes."""
    x, p = inputs[0], node.attr_int("p", 2)
    assert x is not None
    norm = over_axes(
        b,
        x,
        range(2, x.rank),
        Rule("Sum", prepare=lambda e: power(e, p), finish=lambda e, _: root(e, p)),
    )
    return [Reshape(norm, node.out_shape())]
