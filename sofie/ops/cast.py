"""Cast: https://onnx.ai/onnx/operators/onnx__Cast.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator("Cast", since=6, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """C++'s conversions: truncation towards zero, and non-zero is true."""
    to = node.out_dtype()
    # What is not computed in is rounded once, from the type at hand.
    template = f"static_cast<{to.cpp}>({{0}})" if to.is_native else "{0}"
    return [elementwise.apply(node, b, elementwise.given(inputs), to, template)]
