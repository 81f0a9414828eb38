"""PRelu: https://onnx.ai/onnx/operators/onnx__PRelu.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator("PRelu", since=7, dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A leaky Relu whose slopes broadcast to the input."""
    template = "sofie::kernels::LeakyRelu({0}, {1})"
    return [elementwise.apply(node, b, elementwise.given(inputs), node.out_dtype(), template)]
