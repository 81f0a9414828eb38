"""Multinomial: https://onnx.ai/onnx/operators/onnx__Multinomial.html"""

from collections.abc import Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.arg_reduction import place, value_at
from sofie.ops.random_numbers import Generator
from sofie.ops.registry import operator


@operator("Multinomial", since=7, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The largest of unnormalised log probabilities, each with noise of Gumbel's distribution."""
    x = inputs[0]
    assert x is not None
    batch, classes = x.shape
    b.require(dims.ONE, classes, f"{node.label}: there are no classes")
    samples = sympy.Integer(node.attr_int("sample_size", 1))
    numbers = Generator(node, b)
    result = node.out_dtype()
    real = dtype.wide(x.dtype)

    def element(outer: Index, inner: Index) -> Expr:
        item, sample = outer
        (column,) = inner
        drawn = numbers.uniform(real, (batch, samples, classes), (item, sample, column))
        # Of 0, which has no logarithm, the noise would be minus infinity: it never wins, rightly.
        noise = "{0} - sofie::kernels::Log(-sofie::kernels::Log({1}))"
        return value_at(Call(real, noise, (x.load((item, column)), drawn)), column)

    def finish(_: Expr) -> Expr:
        return Call(result, f"static_cast<{result.cpp}>({{0}})", (place(),))

    combine = Combine("ArgMax", real)
    return [Reduction(b, (batch, samples), [classes], combine, element, finish, result, [x])]
