"""LRN: https://onnx.ai/onnx/operators/onnx__LRN.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.attr_int("size") < 1:
        yield f"size = {node.attr_int('size')}"


@operator("LRN", since=1, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Squares summed over ``size`` neighbouring channels, of an element each."""
    x = inputs[0]
    assert x is not None
    size, number = node.attr_int("size"), dtype.wide(x.dtype)
    before, zero = (size - 1) // 2, Literal(number, 0)

    def element(outer: Index, inner: Index) -> Expr:
        channel = outer[1] + inner[0] - before
        value = x.load((outer[0], channel, *outer[2:]))
        square = Call(number, "{0} * {0}", (value,))
        low = Call(
            dtype.BOOL,
            "{0} && {1}",
            (
                compare(">=", channel, dims.ZERO),
                compare("<", channel, x.shape[1]),
            ),
        )
        return Select(number, low, square, zero)

    sums = Reduction(
        b,
        x.shape,
        [sympy.Integer(size)],
        Combine("Sum", number),
        element,
        lambda total: total,
        number,
        [x],
    )
    numbers = [
        Literal(number, node.attr_float(name, default))
        for name, default in (("bias", 1.0), ("alpha", 1e-4), ("beta", 0.75))
    ]
    share = Literal(number, 1 / size)

    def result(index: Index) -> Expr:
        template = "{0} / sofie::kernels::Pow({2} + {3} * {5} * {1}, {4})"
        return Call(x.dtype, template, (x.load(index), sums.load(index), *numbers, share))

    return [b.lazy(x.dtype, x.shape, [x, sums], result)]
