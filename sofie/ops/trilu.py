"""Trilu: https://onnx.ai/onnx/operators/onnx__Trilu.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


@operator("Trilu", since=14, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """What lies on one side of a diagonal, zeros elsewhere; the diagonal may be given by data."""
    x = inputs[0]
    diagonal = inputs[1] if len(inputs) > 1 else None
    assert x is not None
    relation = ">=" if node.attr_int("upper", 1) else "<="

    def element(index: Index) -> Expr:
        k: Expr = Literal(dtype.INT64, 0)
        if diagonal is not None:
            k = diagonal.load((dims.ZERO,) * diagonal.rank)
        offset = IndexExpr(dtype.INT64, index[-1] - index[-2])
        kept = Call(dtype.BOOL, "{0} " + relation + " {1}", (offset, k))
        return Select(x.dtype, kept, x.load(index), Literal(x.dtype, 0))

    return [b.lazy(x.dtype, x.shape, [x, *([diagonal] if diagonal is not None else [])], element)]
