"""MeanVarianceNormalization

https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html
"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops import normalization
from sofie.ops.registry import operator

# What ONNX's definition adds to the standard deviation.
_EPSILON = 1e-9


@operator("MeanVarianceNormalization", since=9, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``(x - mean) / (deviation + 1e-9)``."""
    x = inputs[0]
    assert x is not None
    axes = sorted(a % x.rank for a in node.attr_ints("axes") or (0, 2, 3))
    number = dtype.wide(x.dtype)

    def finish(value: Expr, _: Index) -> Expr:
        parts = (value, *normalization.moments(number), Literal(number, _EPSILON))
        return Call(x.dtype, "({0} - {1}) / (sofie::kernels::Sqrt({2}) + {3})", parts)

    return [b.normalize(x.shape, axes, Combine("MeanVariance", number), x, finish, x.dtype)]
