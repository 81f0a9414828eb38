"""RandomNormal and RandomNormalLike.

https://onnx.ai/onnx/operators/onnx__RandomNormal.html,
https://onnx.ai/onnx/operators/onnx__RandomNormalLike.html
"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.random_numbers import Generator, check
from sofie.ops.registry import operator


@operator("RandomNormal", since=1, dtypes=None, check=check)
@operator("RandomNormalLike", since=1, dtypes=dtype.ALL, check=check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Numbers computed where they are read."""
    result, shape = node.out_dtype(), node.out_shape()
    numbers = Generator(node, b)
    mean = Literal(result, node.attr_float("mean", 0.0))
    scale = Literal(result, node.attr_float("scale", 1.0))

    def element(index: Index) -> Expr:
        parts = (numbers.normal(result, shape, index), mean, scale)
        return Call(result, "{1} + {0} * {2}", parts)

    return [b.lazy(result, shape, (), element)]
