"""BitShift: https://onnx.ai/onnx/operators/onnx__BitShift.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator

elementwise.infer_broadcast("BitShift")

_FUNCTIONS = {"LEFT": "ShiftLeft", "RIGHT": "ShiftRight"}


def _check(node: Node) -> Iterator[str]:
    direction = node.attr_string("direction", "")
    if direction not in _FUNCTIONS:
        yield f"direction = {direction!r}"


@operator("BitShift", since=11, dtypes=dtype.INTEGERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Amounts beyond the type's width leave 0, or -1 of negative numbers."""
    function = _FUNCTIONS[node.attr_string("direction", "")]
    template = f"sofie::kernels::{function}({{0}}, {{1}})"
    return [elementwise.apply(node, b, elementwise.given(inputs), node.out_dtype(), template)]
