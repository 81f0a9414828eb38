"""RNN: https://onnx.ai/onnx/operators/onnx__RNN.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.recurrent import Recurrence, check, total
from sofie.ops.registry import operator

_FUNCTIONS = ("Tanh",)


def _check(node: Node) -> Iterator[str]:
    yield from check(node, _FUNCTIONS)


@operator("RNN", since=7, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A product and a kernel for each time."""
    net = Recurrence(node, b, inputs, 1, _FUNCTIONS)
    (activate,) = net.functions
    projected = net.project(net.bias())
    h = net.state(5)
    result = net.result()
    with b.repeat(net.steps) as step:
        product = net.product(h, 0, 1)

        def cell(d: dims.Expr, item: dims.Expr, unit: dims.Expr, time: dims.Expr) -> list[Expr]:
            terms = projected.load((time, item, d, unit)), product.load((d, item, unit))
            return [activate(d, net.clipped(total(net.dtype, *terms)))]

        net.store(step, cell, [h], result)
    return net.outputs(result, [h])
