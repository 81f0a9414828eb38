"""Mean: https://onnx.ai/onnx/operators/onnx__Mean.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("Mean")


@operator("Mean", since=8, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The sum from the left, then one division."""
    tensors = elementwise.given(inputs)
    terms = " + ".join(f"{{{i}}}" for i in range(len(tensors)))
    template = f"({terms}) / {len(tensors)}"
    return [elementwise.apply(node, b, tensors, node.out_dtype(), template)]
