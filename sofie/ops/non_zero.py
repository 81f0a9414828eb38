"""NonZero: https://onnx.ai/onnx/operators/onnx__NonZero.html"""

from collections.abc import Iterator, Sequence

import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Select, compare
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops.compaction import at, positions
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if not node.shape(0):
        yield "a scalar"


@shape_rule("NonZero", types=(onnx_ir.DataType.INT64,))
def _shapes(node: Node) -> list[dims.Shape | None]:
    return [(sympy.Integer(len(node.shape(0))), node.counted())]


@operator("NonZero", since=9, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Positions in the flattened input, taken apart into one index for each axis."""
    x = inputs[0]
    assert x is not None
    flat = Reshape(x, (dims.product(x.shape),))

    def mark(index: Index) -> Expr:
        one = Call(dtype.BOOL, f"{{0}} != static_cast<{x.dtype.cpp}>(0)", (flat.load(index),))
        return Call(dtype.UINT8, "static_cast<uint8_t>({0})", (one,))

    found = positions(node, b, b.lazy(dtype.UINT8, flat.shape, [flat], mark))
    strides = dims.packed_strides(x.shape, range(x.rank))

    def element(index: Index) -> Expr:
        def part(axis: int) -> Expr:
            whole = dims.FloorDiv(at(found, index[1]), strides[axis])
            inner = whole if axis == 0 else dims.FloorMod(whole, x.shape[axis])
            return IndexExpr(dtype.INT64, inner)

        result = part(x.rank - 1)
        for axis in reversed(range(x.rank - 1)):
            here = compare("==", index[0], sympy.Integer(axis))
            result = Select(dtype.INT64, here, part(axis), result)
        return result

    return [b.lazy(dtype.INT64, node.out_shape(), [found], element)]
