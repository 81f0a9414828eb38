"""Control flow that is known when a model is read: its graphs become part of the one around them.

An If whose condition is constant leaves the branch that it takes. A Loop with a constant number of
trips whose values are sequences, or change their shapes, is written out; any other one stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sofie.ir.node import Node, constant_array, version_of
from sofie.ops import control_flow, loop

# The most nodes that a loop may become.
_MOST_NODES = 10_000


def inline(model: ir.Model) -> bool:
    """Changes the model in place; constants must have been lifted to initializers.

    Returns:
      Whether anything was changed.
    """
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if not node.domain]
    changed = False
    for node in nodes:
        if node.op_type == "If" and node.graph is not None and node.inputs[0] is not None:
            array = constant_array(node.inputs[0])
            if array is not None and array.size == 1:
                _take_branch(node, "then_branch" if array.item() else "else_branch")
                changed = True
    if changed:
        return True
    for node in nodes:
        if node.op_type == "Loop" and node.graph is not None:
            loop_node = Node(node, version_of(model, ""))
            trips = _trips_to_write_out(loop_node)
            if trips is not None:
                _write_out(loop_node, trips)
                return True  # What is known of its copies is to be inferred first.
    return False


def constant(graph: ir.Graph, name: str, data: np.ndarray) -> ir.Value:
    """A new initializer of a graph."""
    tensor = ir.tensor(data)
    value = ir.Value(shape=ir.Shape(data.shape), type=ir.TensorType(tensor.dtype))
    value.const_value = tensor
    _register(graph, value, name)
    return value


def replace(node: ir.Node, nodes: Sequence[ir.Node], results: Sequence[ir.Value]) -> None:
    """Puts nodes in a node's place, and values in that of its outputs."""
    assert node.graph is not None
    # A result may be a value that keeps its own name, such as an input.
    copies = [ir.node("Identity", [value]) for value in results]
    ir.convenience.replace_nodes_and_values(
        node.graph,
        insertion_point=node,
        old_nodes=[node],
        new_nodes=[*nodes, *copies],
        old_values=node.outputs[: len(results)],
        new_values=[copy.outputs[0] for copy in copies],
    )


def _register(graph: ir.Graph, value: ir.Value, name: str) -> None:
    value.name = name
    while value.name in graph.initializers:
        value.name += "_"
    graph.register_initializer(value)


def _splice(
    target: ir.Graph, inner: ir.Graph, inputs: Sequence[ir.Value], label: str
) -> tuple[list[ir.Node], list[ir.Value]]:
    """A graph's nodes, to be put into another one, and its outputs, for some inputs."""
    for value in list(inner.initializers.values()):
        name = value.name or ""
        del inner.initializers[name]
        _register(target, value, f"{label}/{name}")
    given = dict(zip(inner.inputs, inputs, strict=True))
    outputs = [given.get(value, value) for value in inner.outputs]
    for formal, actual in given.items():
        ir.convenience.replace_all_uses_with(formal, actual)
    inner.outputs.clear()
    nodes = list(inner)
    inner.remove(nodes)
    return nodes, outputs


def _take_branch(node: ir.Node, name: str) -> None:
    assert node.graph is not None
    label = Node(node, 0).label
    nodes, outputs = _splice(node.graph, node.attributes[name].as_graph(), [], label)
    replace(node, nodes, outputs)
    for attribute in node.attributes.values():
        _discard(attribute.as_graph())


def _discard(graph: ir.Graph) -> None:
    """Ends what a graph that is no longer part of the model reads from outside."""
    for node in ir.traversal.RecursiveGraphIterator(graph):
        for position in range(len(node.inputs)):
            node.replace_input_with(position, None)


def _trips_to_write_out(node: Node) -> int | None:
    """The number of trips of a loop that is to be written out; None for any other loop."""
    body = control_flow.graph_of(node, "body")
    trips = loop.trips(node) if loop.runs_to_the_end(node) else None
    if trips is None or not trips.is_Integer or int(trips) * len(body) > _MOST_NODES:
        return None
    try:
        changes = any(True for _ in loop.check_carried(node))
    except ValueError:
        return None
    scans = len(node.raw.outputs) - loop.count_carried(node)
    return int(trips) if changes and (trips > 0 or not scans) else None


def _write_out(node: Node, trips: int) -> None:
    graph = node.raw.graph
    assert graph is not None
    count = loop.count_carried(node)
    values = [value for value in node.raw.inputs[2:] if value is not None]
    scans: list[list[ir.Value]] = [[] for _ in node.raw.outputs[count:]]
    holds = constant(graph, f"{node.label}/condition", np.array(True))
    nodes: list[ir.Node] = []
    for trip in range(trips):
        label = f"{node.label}/{trip}"
        body = control_flow.graph_of(node, "body").clone(allow_outer_scope_values=True)
        for inner in ir.traversal.RecursiveGraphIterator(body):
            inner.name = f"{label}/{inner.name or inner.op_type}"
        number = constant(graph, f"{label}/iteration", np.array(trip, np.int64))
        added, (_, *outputs) = _splice(graph, body, [number, holds, *values], label)
        nodes += added
        values = outputs[:count]
        for found, value in zip(scans, outputs[count:], strict=True):
            found.append(value)
    for position, parts in enumerate(scans):
        added, joined = stack(graph, parts, 0, f"{node.label}/{position}", node.version)
        nodes += added
        values.append(joined)
    replace(node.raw, nodes, values)
    _discard(control_flow.graph_of(node, "body"))


def stack(
    graph: ir.Graph, parts: Sequence[ir.Value], axis: int, label: str, version: int
) -> tuple[list[ir.Node], ir.Value]:
    """Nodes that join tensors along a new axis, and their result."""
    nodes = []
    for part in parts:
        if version >= 13:
            axes = constant(graph, f"{label}/axes", np.array([axis], np.int64))
            nodes.append(ir.node("Unsqueeze", [part, axes], name=f"{label}/Unsqueeze"))
        else:
            nodes.append(ir.node("Unsqueeze", [part], {"axes": [axis]}, name=f"{label}/Unsqueeze"))
    columns = [node.outputs[0] for node in nodes]
    nodes.append(ir.node("Concat", columns, {"axis": axis}, name=f"{label}/Concat"))
    return nodes, nodes[-1].outputs[0]
