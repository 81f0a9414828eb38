"""Loop: https://onnx.ai/onnx/operators/onnx__Loop.html"""

from collections.abc import Iterator, Sequence

import onnx_ir as ir
import onnx_shape_inference as inference

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL
from sofie.ir.expr import Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Strided, Tensor
from sofie.ops import control_flow as flow
from sofie.ops.registry import operator

# The body's inputs and outputs before those that are handed on.
_INPUTS, _OUTPUTS = 2, 1

# All iterations of a loop that its body ends are launched; those after the end change nothing.
_MOST_TRIPS = 1_000_000


def count_carried(node: Node) -> int:
    """How many values an iteration hands to the next one."""
    return len(node.raw.inputs) - _INPUTS


def _infer(ctx: inference.ShapeInferenceContext, raw: ir.Node) -> None:
    """In place of the library's rule, which wants a condition."""
    node = Node(raw, ctx.get_opset_version(""))
    known = trips(node) if runs_to_the_end(node) else None
    count = ctx.new_symbolic_dim() if known is None else dims.as_dim(known)
    inputs, outputs = flow.graph_of(node, "body").inputs, flow.graph_of(node, "body").outputs
    for position, output in enumerate(raw.outputs):
        result = outputs[position + _OUTPUTS]
        if not isinstance(result.type, ir.TensorType):
            output.type = result.type
            continue
        # Where it is what is handed on too, it has the shape that this has from the start.
        handed_on = [flow.origin(v) for v in outputs[_OUTPUTS : _OUTPUTS + count_carried(node)]]
        if flow.origin(result) in handed_on:
            result = inputs[_INPUTS + handed_on.index(flow.origin(result))]
        shape = result.shape
        if shape is not None and position >= count_carried(node):
            shape = ir.Shape([count, *shape])
        ctx.set_shape_and_dtype(output, shape, result.dtype)


for _version in inference.registry.version_boundaries("", "Loop"):
    inference.registry.register("", "Loop", since_version=_version)(_infer)


def runs_to_the_end(node: Node) -> bool:
    """True where the body never ends the loop."""
    body = flow.graph_of(node, "body")
    condition = flow.origin(body.outputs[0])
    return condition is body.inputs[1] or flow.is_true(condition)


def trips(node: Node) -> dims.Expr | None:
    """The number of iterations, or the most where the body may end the loop; None if unknown."""
    known = node.known(0)
    if known is None:
        return None
    if not runs_to_the_end(node):
        return dims.largest(known[0], dims.ZERO)
    condition = (dims.ONE,) if not node.has(1) else _truth(node, 1)
    if condition is None:
        return None
    return dims.largest(known[0], dims.ZERO) * condition[0]


def _truth(node: Node, position: int) -> tuple[dims.Expr, ...] | None:
    value = flow.origin(node.input(position))
    return (dims.ONE,) if flow.is_true(value) else node.known(position)


def _check(node: Node) -> Iterator[str]:
    most = trips(node)
    if not node.has(0):
        yield "a loop without an end"
    elif most is None:
        yield "a trip count or a condition that another loop computes"
    elif not runs_to_the_end(node):
        if most.is_Integer and int(most) > _MOST_TRIPS:
            yield f"a loop that its body ends, with {int(most)} trips at most"
        scanned = range(count_carried(node), len(node.raw.outputs))
        if any(node.is_used(position) for position in scanned):
            yield "scan outputs of a loop that its body ends"
    yield from check_carried(node)


def check_carried(node: Node) -> Iterator[str]:
    """A reason for each value that does not keep type and shape."""
    pairs = [(i + _INPUTS, i + _OUTPUTS) for i in range(count_carried(node))]
    yield from flow.check_carried(flow.graph_of(node, "body"), pairs)


@operator("Loop", since=1, dtypes=None, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The body, once for every trip."""
    body = flow.graph_of(node, "body")
    count = trips(node)
    assert count is not None
    initial = [t for t in inputs[2:] if t is not None]
    # What the body hands on as it is needs no memory.
    fixed = [_is_fixed(body, i) for i in range(len(initial))]
    carried = [
        None if keep else flow.Carried(b, tensor, tensor.shape)
        for tensor, keep in zip(initial, fixed, strict=True)
    ]
    targets: list[Strided | None] = [
        b.output(node.out_dtype(i), node.out_shape(i)) if node.is_used(i) else None
        for i in range(len(initial), len(node.raw.outputs))
    ]
    for target in targets:
        if target is not None:
            b.require_equal(target.shape[0], count, "trips and length of the scan outputs")
    live: flow.Carried | None = None
    if not runs_to_the_end(node):
        start = inputs[1]
        live = flow.Carried(b, _true(b) if start is None else Reshape(start, ()), ())
    step = flow.variable(body)
    with b.repeat(count, step):
        states = [t if c is None else c.before(step) for t, c in zip(initial, carried, strict=True)]
        holds = _true(b) if live is None else live.before(step)
        again, *values = b.subgraph(body, [b.known((), (step,)), holds, *states])
        pairs = []
        for value, before, c in zip(values, states, carried, strict=False):
            if c is not None:
                flow.demand_shape(b, value, c.shape)
                new = value if live is None else _choose(b, holds, value, before)
                pairs.append((new, c.after(step)))
        if live is not None:
            pairs.append((_choose(b, holds, Reshape(again, ()), holds), live.after(step)))
        for value, target in zip(values[len(initial) :], targets, strict=True):
            if target is not None:
                pairs.append((value, flow.along(b, target, 0, step)))
        flow.store(b, pairs)
    final = [t if c is None else c.before(count) for t, c in zip(initial, carried, strict=True)]
    return [*final, *targets]


def _true(b: Builder) -> Tensor:
    return b.lazy(BOOL, (), (), lambda _: Literal(BOOL, True))


def _choose(b: Builder, condition: Tensor, then: Tensor, other: Tensor) -> Tensor:
    """One of two tensors, as a scalar says."""

    def element(index: Index) -> Expr:
        return Select(then.dtype, condition.load(()), then.load(index), other.load(index))

    return b.lazy(then.dtype, other.shape, [condition, then, other], element)


def _is_fixed(body: ir.Graph, number: int) -> bool:
    return flow.origin(body.outputs[number + _OUTPUTS]) is body.inputs[number + _INPUTS]
