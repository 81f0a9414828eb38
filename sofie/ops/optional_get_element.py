"""OptionalGetElement: https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.elementwise import given
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("OptionalGetElement", since=18, is_view=True)
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


@operator("OptionalGetElement", since=18, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A tensor, which is always there."""
    return given(inputs)
