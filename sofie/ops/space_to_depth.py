"""SpaceToDepth: https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    mode = node.attr_string("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        yield f"the mode {mode!r}"


@shape_rule("SpaceToDepth")
def _shapes(node: Node) -> list[dims.Shape | None]:
    n, c, h, w = node.shape(0)
    block = sympy.Integer(node.attr_int("blocksize"))
    return [(n, c * block**2, dims.FloorDiv(h, block), dims.FloorDiv(w, block))]


@operator("SpaceToDepth", since=1, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Blocks of pixels become blocks of channels."""
    x, shape = inputs[0], _shapes(node)[0]
    assert x is not None and shape is not None
    block = sympy.Integer(node.attr_int("blocksize"))
    for axis in (2, 3):
        b.require_equal(
            x.shape[axis],
            shape[axis] * block,
            f"the extent of axis {axis} and the largest multiple of blocksize",
        )
    blocks = (block, block)
    depth_first = node.attr_string("mode", "DCR") == "DCR"

    def element(index: Index) -> Expr:
        batch, *inner, row, column = index
        y, x_, c = inner if depth_first else (*inner[1:], inner[0])
        return x.load((batch, c, row * block + y, column * block + x_))

    channels = (*blocks, x.shape[1]) if depth_first else (x.shape[1], *blocks)
    split = (x.shape[0], *channels, *shape[2:])
    return [Reshape(b.lazy(x.dtype, split, [x], element), shape)]
