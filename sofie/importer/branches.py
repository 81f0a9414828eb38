"""Replaces an If whose condition is constant by the branch that it takes."""

from __future__ import annotations

import onnx_ir as ir

from sofie.ir.node import Node, constant_array


def fold(model: ir.Model) -> bool:
    """Changes the model in place; constants must have been lifted to initializers.

    Returns:
      Whether anything was replaced.
    """
    changed = False
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "If" or node.domain or node.graph is None:
            continue
        condition = node.inputs[0]
        array = None if condition is None else constant_array(condition)
        if array is not None and array.size == 1:
            _inline(node, "then_branch" if array.item() else "else_branch")
            changed = True
    return changed


def _inline(node: ir.Node, name: str) -> None:
    graph, branch = node.graph, node.attributes[name].as_graph()
    assert graph is not None
    for value in list(branch.initializers.values()):
        del branch.initializers[value.name or ""]
        value.name = f"{Node(node, 0).label}/{value.name}"
        while value.name in graph.initializers:
            value.name += "_"
        graph.register_initializer(value)
    nodes = list(branch)
    # An output may be a value from outside, which keeps its own name.
    results = [ir.node("Identity", [value]) for value in branch.outputs]
    branch.outputs.clear()
    branch.remove(nodes)
    ir.convenience.replace_nodes_and_values(
        graph,
        insertion_point=node,
        old_nodes=[node],
        new_nodes=[*nodes, *results],
        old_values=node.outputs,
        new_values=[result.outputs[0] for result in results],
    )
