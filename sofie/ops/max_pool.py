"""MaxPool: https://onnx.ai/onnx/operators/onnx__MaxPool.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import pooling
from sofie.ops.registry import operator


@operator("MaxPool", since=1, dtypes=dtype.FLOATS, check=pooling.check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A maximum over every window; elements beyond the input never win."""
    x = inputs[0]
    assert x is not None
    lowest = Call(x.dtype, f"-std::numeric_limits<{x.dtype.cpp}>::infinity()", ())
    return [pooling.pool(node, b, x, "Max", lowest, lambda value: value)]
