"""GRU: https://onnx.ai/onnx/operators/onnx__GRU.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.recurrent import Recurrence, check, total
from sofie.ops.registry import operator

_FUNCTIONS = ("Sigmoid", "Tanh")
# The gates in the order of the weights' rows.
_UPDATE, _RESET, _HIDDEN = range(3)


def _check(node: Node) -> Iterator[str]:
    yield from check(node, _FUNCTIONS)


@operator("GRU", since=7, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A product and a kernel for each time; two of each where the reset comes first."""
    net = Recurrence(node, b, inputs, 3, _FUNCTIONS)
    activate, squash = net.functions
    reset_after = node.attr_int("linear_before_reset", 0) != 0
    projected = net.project(net.bias([_HIDDEN] if reset_after else []))
    h = net.state(5)
    result = net.result()
    with b.repeat(net.steps) as step:
        product = net.product(h, 0, 3 if reset_after else 2)

        def gate(
            number: int, d: dims.Expr, item: dims.Expr, unit: dims.Expr, time: dims.Expr
        ) -> Expr:
            row = number * net.hidden + unit
            terms = projected.load((time, item, d, row)), product.load((d, item, row))
            return activate(d, net.clipped(total(net.dtype, *terms)))

        def new(
            d: dims.Expr, index: tuple[dims.Expr, ...], candidate: Expr, update: Expr
        ) -> list[Expr]:
            value = squash(d, net.clipped(candidate))
            parts = (Literal(net.dtype, 1.0), update, value, h.load(index))
            return [Call(net.dtype, "({0} - {1}) * {2} + {1} * {3}", parts)]

        if reset_after:

            def cell(d: dims.Expr, item: dims.Expr, unit: dims.Expr, time: dims.Expr) -> list[Expr]:
                row = _HIDDEN * net.hidden + unit
                recurrent = total(
                    net.dtype, product.load((d, item, row)), net.recurrent_bias(_HIDDEN, d, unit)
                )
                reset = gate(_RESET, d, item, unit, time)
                parts = (projected.load((time, item, d, row)), reset, recurrent)
                candidate = Call(net.dtype, "{0} + {1} * {2}", parts)
                return new(d, (d, item, unit), candidate, gate(_UPDATE, d, item, unit, time))

        else:
            update, reset_state = b.output(net.dtype, net.shape), b.output(net.dtype, net.shape)

            def gates(index: tuple[dims.Expr, ...]) -> list[Expr]:
                d, item, unit = index
                time = net.time(step, d, item)
                reset = gate(_RESET, d, item, unit, time)
                kept = Call(net.dtype, "{0} * {1}", (reset, h.load(index)))
                return [gate(_UPDATE, d, item, unit, time), kept]

            b.store(net.shape, gates, [update, reset_state])
            second = net.product(reset_state, _HIDDEN, 1)

            def cell(d: dims.Expr, item: dims.Expr, unit: dims.Expr, time: dims.Expr) -> list[Expr]:
                row = _HIDDEN * net.hidden + unit
                index = (d, item, unit)
                candidate = total(
                    net.dtype, projected.load((time, item, d, row)), second.load(index)
                )
                return new(d, index, candidate, update.load(index))

        net.store(step, cell, [h], result)
    return net.outputs(result, [h])
