"""Col2Im: https://onnx.ai/onnx/operators/onnx__Col2Im.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.folding import Fold, fold
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.known(1) is None:
        yield "an image_shape that depends on data"
    if node.known(2) is None:
        yield "a block_shape that depends on data"


@shape_rule("Col2Im", since=18)
def _shapes(node: Node) -> list[dims.Shape | None]:
    n, rows, _ = node.shape(0)
    geometry = _geometry(node)
    return [(n, dims.FloorDiv(rows, dims.product(geometry.kernel)), *geometry.extents)]


def _geometry(node: Node) -> Fold:
    image, kernel = known(node, 1, "an image_shape"), known(node, 2, "a block_shape")
    rank = len(image)
    strides = node.attr_ints("strides") or (1,) * rank
    dilations = node.attr_ints("dilations") or (1,) * rank
    pads = node.attr_ints("pads") or (0,) * (2 * rank)
    counts = []
    for axis in range(rank):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        room = image[axis] + pads[axis] + pads[rank + axis] - span
        counts.append(dims.FloorDiv(room, sympy.Integer(strides[axis])) + 1)
    before = tuple(sympy.Integer(p) for p in pads[:rank])
    return Fold(kernel, strides, dilations, before, tuple(counts), image)


@operator("Col2Im", since=18, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """At every point of the image the sum of all blocks that cover it."""
    x = inputs[0]
    assert x is not None
    shape, geometry = _shapes(node)[0], _geometry(node)
    assert shape is not None
    size = dims.product(geometry.kernel)
    b.require_equal(x.shape[1], shape[1] * size, "rows and the largest multiple of the block")
    b.require_equal(x.shape[2], dims.product(geometry.counts), "columns and the number of blocks")
    spatial = range(len(geometry.kernel))
    inside = dims.packed_strides(geometry.kernel, spatial)
    across = dims.packed_strides(geometry.counts, spatial)

    def part(at: Index, window: Index, tap: Index) -> Expr:
        row = sum((t * s for t, s in zip(tap, inside, strict=True)), at[1] * size)
        column = sum((i * s for i, s in zip(window, across, strict=True)), dims.ZERO)
        return x.load((at[0], row, column))

    return [fold(b, x.dtype, shape[:2], geometry, part, [x])]
