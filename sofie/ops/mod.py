"""Mod: https://onnx.ai/onnx/operators/onnx__Mod.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("Mod")


@operator("Mod", since=10, dtypes=dtype.NUMBERS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The sign is the divisor's, or with ``fmod`` the dividend's."""
    function = "TruncMod" if node.attr_int("fmod", 0) else "FloorMod"
    template = f"sofie::kernels::{function}({{0}}, {{1}})"
    return [elementwise.apply(node, b, elementwise.given(inputs), node.out_dtype(), template)]
