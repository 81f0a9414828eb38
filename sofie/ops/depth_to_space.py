"""DepthToSpace: https://onnx.ai/onnx/operators/onnx__DepthToSpace.html"""

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


@shape_rule("DepthToSpace")
def _shapes(node: Node) -> list[dims.Shape | None]:
    n, c, h, w = node.shape(0)
    block = sympy.Integer(node.attr_int("blocksize"))
    return [(n, dims.FloorDiv(c, block**2), h * block, w * block)]


@operator("DepthToSpace", since=1, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Blocks of channels become blocks of pixels."""
    x, shape = inputs[0], _shapes(node)[0]
    assert x is not None and shape is not None
    block = sympy.Integer(node.attr_int("blocksize"))
    n, channels = shape[:2]
    b.require_equal(
        x.shape[1], channels * block**2, "channels and the largest multiple of blocksize²"
    )
    depth_first = node.attr_string("mode", "DCR") == "DCR"

    def element(index: Index) -> Expr:
        batch, c, row, y, column, x_ = index
        inner = y * block + x_
        channel = inner * channels + c if depth_first else c * block**2 + inner
        return x.load((batch, channel, row, column))

    split = (n, channels, x.shape[2], block, x.shape[3], block)
    return [Reshape(b.lazy(x.dtype, split, [x], element), shape)]
