"""Pow: https://onnx.ai/onnx/operators/onnx__Pow.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("Pow")


def _check(node: Node) -> Iterator[str]:
    if node.dtype(1) not in dtype.FLOATS:
        yield f"an exponent of type {node.dtype(1).name}; cast it to a floating-point type"


@operator("Pow", since=7, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The exponent keeps its own type until it meets the base."""
    base = node.out_dtype()
    template = f"sofie::kernels::Pow<{base.cpp}>({{0}}, {{1}})"
    return [elementwise.apply(node, b, elementwise.given(inputs), base, template)]
