"""Pow: https://onnx.ai/onnx/operators/onnx__Pow.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("Pow")


@operator("Pow", since=7, dtypes=dtype.FLOATS | {dtype.INT32, dtype.INT64})
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The exponent keeps its own type until it meets the base."""
    base = node.out_dtype()
    template = f"sofie::kernels::Pow<{base.cpp}>({{0}}, {{1}})"
    return [elementwise.apply(node, b, elementwise.given(inputs), base, template)]
