"""Loop, Scan and If: what their files have in common.

The body of a loop is lowered once, inside of a repetition. A value that one iteration hands to the
next lies in one of two slots, which take turns: an iteration reads one and writes the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import onnx_ir as ir
import sympy
from onnx_shape_inference import SYM_DATA_KEY

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import READS, Node, constant_array, known_values, value_shape
from sofie.ir.tensor import Index, Strided, Tensor


def prepare(graph: ir.Graph) -> None:
    """Forgets what a file says of graphs inside of nodes, and names what loops count.

    Shape inference then takes the inputs' shapes from outside.
    """
    for node in ir.traversal.RecursiveGraphIterator(graph):
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                for value in attribute.as_graph().inputs:
                    value.shape = None
    for number, body in enumerate(loops(graph)):
        iteration, condition = body.inputs[:2]
        iteration.shape, condition.shape = ir.Shape([]), ir.Shape([])
        counted = dims.iteration(number)
        iteration.metadata_props[SYM_DATA_KEY] = json.dumps([counted.name])
        iteration.meta[READS] = (counted,)


def loops(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The bodies of all loops, in a fixed order."""
    for node in ir.traversal.RecursiveGraphIterator(graph):
        if node.op_type == "Loop" and not node.domain:
            yield node.attributes["body"].as_graph()


def nodes_inside(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes of all graphs inside of a node."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield from ir.traversal.RecursiveGraphIterator(attribute.as_graph())


def graph_of(node: Node, name: str) -> ir.Graph:
    """A graph inside of a node."""
    return node.raw.attributes[name].as_graph()


def origin(value: ir.Value) -> ir.Value:
    """Where a value comes from, identities aside."""
    producer = value.producer()
    while producer is not None and producer.op_type == "Identity" and not producer.domain:
        source = producer.inputs[0]
        assert source is not None
        value, producer = source, source.producer()
    return value


def is_true(value: ir.Value) -> bool:
    """True for a constant that holds."""
    array = constant_array(origin(value))
    return array is not None and bool(array.all())


def check_carried(body: ir.Graph, pairs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Values that an iteration hands on must keep type and shape.

    Args:
      body: the loop's body.
      pairs: positions of the body's inputs and outputs.
    """
    for at, to in pairs:
        source, result = body.inputs[at], body.outputs[to]
        if not isinstance(result.type, ir.TensorType):
            yield f"{result.name!r}, which is no tensor, as a value that changes in every iteration"
            continue
        before, after = value_shape(source), value_shape(result)
        if len(before) != len(after) or not all(map(_may_be_same, before, after)):
            yield f"{result.name!r}: a value whose shape changes in every iteration"


def _may_be_same(before: dims.Expr, after: dims.Expr) -> bool:
    """True for equal sizes, and for one that the iteration's number has a part in."""
    return dims.same(before, after) or bool(dims.iterations(after))


class Carried:
    """A value that an iteration hands to the next one."""

    def __init__(self, b: Builder, initial: Tensor, shape: dims.Shape) -> None:
        self.b, self.shape = b, shape
        self._memory = b.output(initial.dtype, (sympy.Integer(2), *shape)).buffer
        b.store(shape, lambda index: [initial.load(index)], [self._slot(dims.ZERO)])

    def _slot(self, number: dims.Expr) -> Strided:
        strides = dims.packed_strides(self.shape, range(len(self.shape)))
        offset = number * dims.product(self.shape)
        return Strided(self.b, self._memory, self.shape, strides, offset)

    def before(self, iteration: dims.Expr) -> Strided:
        """The value that an iteration starts with; after the last one, the result."""
        return self._slot(dims.FloorMod(iteration, sympy.Integer(2)))

    def after(self, iteration: dims.Expr) -> Strided:
        """Where an iteration puts the next value."""
        return self.before(iteration + 1)


def demand_shape(b: Builder, value: Tensor, shape: dims.Shape) -> None:
    """Demands that an iteration leaves a shape as it is."""
    for axis, (extent, wanted) in enumerate(zip(value.shape, shape, strict=True)):
        b.require_equal(extent, wanted, f"extents along axis {axis} before and after an iteration")


def store(b: Builder, pairs: Sequence[tuple[Tensor, Strided]]) -> None:
    """Stores tensors, those of one shape in one kernel."""
    groups: dict[dims.Shape, list[tuple[Tensor, Strided]]] = {}
    for value, target in pairs:
        groups.setdefault(target.shape, []).append((value, target))
    for shape, group in groups.items():

        def element(index: Index, group: list[tuple[Tensor, Strided]] = group) -> list[Expr]:
            return [value.load(index) for value, _ in group]

        b.store(shape, element, [target for _, target in group])


def along(b: Builder, whole: Strided, axis: int, position: dims.Expr) -> Strided:
    """What lies at a position along an axis, without that axis."""
    keep = [a for a in range(whole.rank) if a != axis]
    return Strided(
        b,
        whole.buffer,
        [whole.shape[a] for a in keep],
        [whole.strides[a] for a in keep],
        whole.offset + position * whole.strides[axis],
    )


def variable(body: ir.Graph) -> sympy.Symbol:
    """What counts the iterations of a Loop."""
    (symbol,) = known_values(body.inputs[0]) or ()
    assert isinstance(symbol, sympy.Symbol)
    return symbol
