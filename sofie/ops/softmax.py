"""Softmax: https://onnx.ai/onnx/operators/onnx__Softmax.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Accumulator, Call, Expr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


@operator("Softmax", since=13, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One pass for maximum and sum (online), one to store."""
    x = inputs[0]
    assert x is not None
    axis = node.axis(-1)

    def finish(value: Expr, _: Index) -> Expr:
        parts = (value, Accumulator(x.dtype, "max"), Accumulator(x.dtype, "sum"))
        return Call(x.dtype, "sofie::kernels::Exp({0} - {1}) / {2}", parts)

    combine = Combine("MaxSumExp", x.dtype)
    return [b.normalize(node.out_shape(), [axis], combine, x, finish, x.dtype)]
