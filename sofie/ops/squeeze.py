"""Squeeze: https://onnx.ai/onnx/operators/onnx__Squeeze.html"""

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
    elif known_axes(node, 1, len(shape := node.shape(0))) is None and any(
        not extent.is_Integer for extent in shape
    ):
        yield "no axes, and symbolic sizes that may or may not be 1; give it axes"


@shape_rule("Squeeze", is_view=True)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axes = node.shape(0), _axes(node)
    return [tuple(extent for axis, extent in enumerate(shape) if axis not in axes)]


def _axes(node: Node) -> tuple[int, ...]:
    """The axes to remove: without any given, those of extent 1, which must be known."""
    shape = node.shape(0)
    axes = known_axes(node, 1, len(shape))
    if axes is not None:
        return axes
    if any(not extent.is_Integer for extent in shape):
        raise ValueError("the rank of its output depends on sizes")
    return tuple(axis for axis, extent in enumerate(shape) if extent == 1)


@operator("Squeeze", since=1, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view under the inferred shape."""
    x = inputs[0]
    assert x is not None
    for axis in _axes(node):
        b.require_equal(x.shape[axis], dims.ONE, f"the extent of squeezed axis {axis} and 1")
    return [Reshape(x, node.out_shape())]
