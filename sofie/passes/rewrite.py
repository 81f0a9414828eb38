"""Exchanging nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from sofie.importer.load import Model


def replace(
    model: Model,
    nodes: list[ir.Node],
    op_type: str,
    inputs: list[ir.Value | None],
    attributes: Iterable[ir.Attr],
    domain: str = "",
) -> ir.Node:
    """One node in place of a chain, named after all of them; it takes the last one's output."""
    last = nodes[-1]
    old = last.outputs[0]
    name = " + ".join(n.name or n.op_type for n in nodes)
    new = ir.Node(domain, op_type, inputs, list(attributes), name=name, num_outputs=1)
    model.graph.insert_before(last, new)
    new.outputs[0].type, new.outputs[0].shape = old.type, old.shape
    ir.convenience.replace_all_uses_with(old, new.outputs[0], replace_graph_outputs=True)
    value_name = old.name
    for node in reversed(nodes):
        model.graph.remove(node, safe=True)
    new.outputs[0].name = value_name
    return new


def add_initializer(model: Model, name: str, data: np.ndarray) -> ir.Value:
    """A new constant of the graph, called ``name`` unless another one is."""
    while name in model.graph.initializers:
        name += "_"
    tensor = ir.tensor(data, name=name)
    value = ir.Value(
        name=name, shape=ir.Shape(data.shape), type=ir.TensorType(tensor.dtype), const_value=tensor
    )
    model.graph.register_initializer(value)
    return value
