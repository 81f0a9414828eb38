"""Unsqueeze: https://onnx.ai/onnx/operators/onnx__Unsqueeze.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.axes import inserted, named, operand_axes, require_axes
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("Unsqueeze", is_view=True)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axes = node.shape(0), operand_axes(node)
    return [None if axes is None else inserted(shape, named(axes, len(shape) + len(axes)))]


def _check(node: Node) -> Iterator[str]:
    if operand_axes(node) is None:
        yield "a number of axes that is not known at build time"


@operator("Unsqueeze", since=1, dtypes=dtype.EVERY, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view under the inferred shape."""
    x, axes = inputs[0], operand_axes(node)
    assert x is not None and axes is not None
    require_axes(b, axes, x.rank + len(axes))
    return [Reshape(x, node.out_shape())]
