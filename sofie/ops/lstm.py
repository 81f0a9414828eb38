"""LSTM: https://onnx.ai/onnx/operators/onnx__LSTM.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.recurrent import Recurrence, check, total
from sofie.ops.registry import operator

_FUNCTIONS = ("Sigmoid", "Tanh", "Tanh")
# The gates in the order of the weights' rows; peepholes have the first three.
_INPUT, _OUTPUT, _FORGET, _CELL = range(4)


def _check(node: Node) -> Iterator[str]:
    yield from check(node, _FUNCTIONS)


@operator("LSTM", since=7, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A product and a kernel for each time."""
    net = Recurrence(node, b, inputs, 4, _FUNCTIONS)
    activate, squash, squash_output = net.functions
    projected = net.project(net.bias())
    h, c = net.state(5), net.state(6)
    peepholes = net.peepholes()
    result = net.result()
    coupled = node.attr_int("input_forget", 0) != 0
    with b.repeat(net.steps) as step:
        product = net.product(h, 0, 4)

        def cell(d: dims.Expr, item: dims.Expr, unit: dims.Expr, time: dims.Expr) -> list[Expr]:
            def gate(number: int, state: Expr | None) -> Expr:
                row = number * net.hidden + unit
                peephole = None
                if peepholes is not None and state is not None:
                    parts = (peepholes.load((d, row)), state)
                    peephole = Call(net.dtype, "{0} * {1}", parts)
                return net.clipped(
                    total(
                        net.dtype,
                        projected.load((time, item, d, row)),
                        product.load((d, item, row)),
                        peephole,
                    )
                )

            before = c.load((d, item, unit))
            keep_in = activate(d, gate(_INPUT, before))
            keep: Expr
            if coupled:
                keep = Call(net.dtype, "{1} - {0}", (keep_in, Literal(net.dtype, 1.0)))
            else:
                keep = activate(d, gate(_FORGET, before))
            candidate = squash(d, gate(_CELL, None))
            parts = (keep, before, keep_in, candidate)
            after = Call(net.dtype, "{0} * {1} + {2} * {3}", parts)
            keep_out = activate(d, gate(_OUTPUT, after))
            hidden = Call(net.dtype, "{0} * {1}", (keep_out, squash_output(d, after)))
            return [hidden, after]

        net.store(step, cell, [h, c], result)
    return net.outputs(result, [h, c])
