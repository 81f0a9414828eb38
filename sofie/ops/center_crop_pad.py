"""CenterCropPad: https://onnx.ai/onnx/operators/onnx__CenterCropPad.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import inside
from sofie.ops.inference import known, known_axes, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.known(1) is None:
        yield "a shape that depends on data"


@shape_rule("CenterCropPad", since=18)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, wanted = list(node.shape(0)), known(node, 1, "a shape")
    axes = known_axes(node, 2, len(shape)) or range(len(shape))
    if len(axes) != len(wanted):
        raise ValueError(f"{len(wanted)} extents for {len(axes)} axes")
    for axis, extent in zip(axes, wanted, strict=True):
        shape[axis] = extent
    return [tuple(shape)]


@operator("CenterCropPad", since=18, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The middle of the input, zeros around it where the output is larger."""
    x, shape = inputs[0], _shapes(node)[0]
    assert x is not None and shape is not None
    two = sympy.Integer(2)
    starts, margins = [], []
    for have, want in zip(x.shape, shape, strict=True):
        b.require(dims.ZERO, want, f"{node.label}: an output with an axis of {{high}} elements")
        # An odd element is cut from or added to the end.
        cut = dims.FloorDiv(dims.largest(have - want, dims.ZERO), two)
        added = dims.FloorDiv(dims.largest(want - have, dims.ZERO), two)
        starts.append(cut - added)
        margins.append((added, want - have))

    def element(index: Index) -> Expr:
        position = [i + start for i, start in zip(index, starts, strict=True)]
        within = inside(position, x.shape, margins)
        value = x.load(tuple(position))
        return value if within is None else Select(x.dtype, within, value, Literal(x.dtype, 0))

    return [b.lazy(x.dtype, shape, [x], element)]
