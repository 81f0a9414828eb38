"""Bernoulli: https://onnx.ai/onnx/operators/onnx__Bernoulli.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.random_numbers import Generator
from sofie.ops.registry import operator


@operator("Bernoulli", since=15, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """1 where a uniform number is below the input."""
    x = inputs[0]
    assert x is not None
    numbers = Generator(node, b)
    result = node.out_dtype()
    template = f"static_cast<{result.cpp}>({{0}} < {{1}})"

    def element(index: Index) -> Expr:
        return Call(result, template, (numbers.uniform(x.dtype, x.shape, index), x.load(index)))

    return [b.lazy(result, x.shape, [x], element)]
