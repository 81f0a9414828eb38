"""Where: https://onnx.ai/onnx/operators/onnx__Where.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("Where", 1)


@operator("Where", since=9, dtypes={dtype.BOOL})
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Both values are loaded: a select costs less than a branch."""
    tensors = elementwise.given(inputs)
    return [elementwise.apply(node, b, tensors, node.out_dtype(), "{0} ? {1} : {2}")]
