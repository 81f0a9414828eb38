"""Gelu: https://onnx.ai/onnx/operators/onnx__Gelu.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

_FUNCTIONS = {"none": "Gelu", "tanh": "GeluTanh"}


def _check(node: Node) -> Iterator[str]:
    approximate = node.attr_string("approximate", "none")
    if approximate not in _FUNCTIONS:
        yield f"approximate = {approximate!r}"


@operator("Gelu", since=20, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """With erf, or with its approximation by tanh."""
    (x,) = elementwise.given(inputs)
    function = _FUNCTIONS[node.attr_string("approximate", "none")]
    return [elementwise.call(b, x.dtype, f"sofie::kernels::{function}({{0}})", x)]
