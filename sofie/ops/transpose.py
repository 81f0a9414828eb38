"""Transpose: https://onnx.ai/onnx/operators/onnx__Transpose.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Permute, Tensor
from sofie.ops.elementwise import given
from sofie.ops.registry import operator


@operator("Transpose", since=1, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view."""
    (x,) = given(inputs)
    perm = node.attr_ints("perm") or tuple(reversed(range(x.rank)))
    return [Permute(x, perm)]
