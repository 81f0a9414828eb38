"""RandomUniform and RandomUniformLike.

https://onnx.ai/onnx/operators/onnx__RandomUniform.html,
https://onnx.ai/onnx/operators/onnx__RandomUniformLike.html
"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.random_numbers import Generator, check
from sofie.ops.registry import operator


@operator("RandomUniform", since=1, dtypes=None, check=check)
@operator("RandomUniformLike", since=1, dtypes=dtype.ALL, check=check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Numbers computed where they are read."""
    result, shape = node.out_dtype(), node.out_shape()
    numbers = Generator(node, b)
    low = Literal(result, node.attr_float("low", 0.0))
    high = Literal(result, node.attr_float("high", 1.0))

    def element(index: Index) -> Expr:
        parts = (numbers.uniform(result, shape, index), low, high)
        return Call(result, "{1} + {0} * ({2} - {1})", parts)

    return [b.lazy(result, shape, (), element)]
