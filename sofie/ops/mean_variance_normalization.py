"""MeanVarianceNormalization

https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html
"""

from collections.abc import Iterator, Sequence

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


def _axes(node: Node) -> tuple[int, ...]:
    return node.attr_ints("axes") or (0, 2, 3)


def _check(node: Node) -> Iterator[str]:
    rank = len(node.shape(0))
    if not all(-rank <= axis < rank for axis in _axes(node)):
        yield f"axes {_axes(node)} of an input of rank {rank}"


@operator("MeanVarianceNormalization", since=9, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``(x - mean) / (deviation + 1e-9)``."""
    x = inputs[0]
    assert x is not None
    axes = sorted({axis % x.rank for axis in _axes(node)})
    number = dtype.wide(x.dtype)

    def finish(value: Expr, _: Index) -> Expr:
        parts = (value, *normalization.moments(number), Literal(number, _EPSILON))
        return Call(x.dtype, "({0} - {1}) / (sofie::kernels::Sqrt({2}) + {3})", parts)

    return [b.normalize(x.shape, axes, Combine("MeanVariance", number), x, finish, x.dtype)]
