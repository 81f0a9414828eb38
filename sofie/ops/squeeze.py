"""Squeeze: https://onnx.ai/onnx/operators/onnx__Squeeze.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.axes import named, operand_axes, require_axes, without
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    axes = operand_axes(node)
    if axes is None:
        yield "a number of axes that is not known at build time"
    elif not axes and any(not extent.is_Integer for extent in node.shape(0)):
        yield "no axes, and symbolic sizes that may or may not be 1; give it axes"


@shape_rule("Squeeze", is_view=True)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axes = node.shape(0), _axes(node)
    return [without(shape, named(axes, len(shape)), len(shape) - len(axes))]


def _axes(node: Node) -> tuple[dims.Expr, ...]:
    """The axes to remove: without any given, those of extent 1, which must be known."""
    shape, axes = node.shape(0), operand_axes(node)
    if axes is None or (not axes and any(not extent.is_Integer for extent in shape)):
        raise ValueError("the rank of its output is not known at build time")
    return axes or tuple(sympy.Integer(a) for a, extent in enumerate(shape) if extent == 1)


@operator("Squeeze", since=1, dtypes=dtype.EVERY, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view under the inferred shape."""
    x, axes = inputs[0], _axes(node)
    assert x is not None
    require_axes(b, axes, x.rank)
    for axis, (extent, hit) in enumerate(zip(x.shape, named(axes, x.rank), strict=True)):
        squeezed = dims.Where(hit, extent, dims.ONE)
        b.require_equal(squeezed, dims.ONE, f"the extent of squeezed axis {axis} and 1")
    return [Reshape(x, node.out_shape())]
