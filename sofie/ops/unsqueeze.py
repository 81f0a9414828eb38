"""Unsqueeze: https://onnx.ai/onnx/operators/onnx__Unsqueeze.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.inference import known_axes, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.has(1) and node.known(1) is None:
        yield "axes that depend on data"


@shape_rule("Unsqueeze", is_view=True)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape = list(node.shape(0))
    count = len(node.attr_ints("axes") or node.known(1) or ())
    for axis in sorted(known_axes(node, 1, len(shape) + count) or ()):
        shape.insert(axis, dims.ONE)
    return [tuple(shape)]


@operator("Unsqueeze", since=1, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view under the inferred shape."""
    x = inputs[0]
    assert x is not None
    return [Reshape(x, node.out_shape())]
