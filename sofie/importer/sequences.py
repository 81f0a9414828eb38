"""Sequences: lists of tensors that are known when a model is read, and gone afterwards.

Whatever makes a sequence lists its tensors; whatever reads one reads these instead.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sofie.importer import subgraphs
from sofie.ir.node import Node, constant_array, version_of

OPERATORS = (
    "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
    "SequenceLength SplitToSequence"
).split()


def resolve(model: ir.Model) -> bool:
    """Changes the model in place; shapes must be known.

    Returns:
      Whether anything was changed.
    """
    lists = _Lists(version_of(model, ""))
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    changed = False
    for node in nodes:
        if not node.domain and lists.visit(node):
            changed = True
    # What made a sequence that nobody reads any more goes.
    for node in reversed(nodes):
        makes = not node.domain and (node.op_type in OPERATORS or node.op_type == "Identity")
        listed = makes and node.graph is not None and node.outputs[0] in lists.tensors
        if listed and not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
            assert node.graph is not None
            node.graph.remove(node, safe=True)
    return changed


class _Lists:
    """The sequences that are known.

    Attributes:
      tensors: by the sequence's value.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.tensors: dict[ir.Value, list[ir.Value]] = {}

    def visit(self, raw: ir.Node) -> bool:
        """Lists what the node makes, or replaces it; the latter gives True."""
        node = Node(raw, self.version)
        if raw.op_type == "SequenceEmpty":
            self.tensors[raw.outputs[0]] = []
        elif raw.op_type == "SequenceConstruct":
            self.tensors[raw.outputs[0]] = [value for value in raw.inputs if value is not None]
        elif raw.op_type == "SplitToSequence":
            self._split(node)
        elif raw.inputs and raw.inputs[0] is not None and raw.inputs[0] in self.tensors:
            return self._use(node, self.tensors[raw.inputs[0]])
        return False

    def _use(self, node: Node, tensors: list[ir.Value]) -> bool:
        raw, graph = node.raw, node.raw.graph
        assert graph is not None
        if raw.op_type == "Identity":
            self.tensors[raw.outputs[0]] = tensors
        elif raw.op_type == "SequenceInsert":
            position = _position(node, 2, len(tensors), len(tensors) + 1)
            if position is not None:
                self.tensors[raw.outputs[0]] = [*tensors]
                self.tensors[raw.outputs[0]].insert(position, node.input(1))
        elif raw.op_type == "SequenceErase":
            position = _position(node, 1, len(tensors) - 1, len(tensors))
            if position is not None:
                rest = tensors[:position] + tensors[position + 1 :]
                self.tensors[raw.outputs[0]] = rest
        elif raw.op_type == "SequenceAt":
            position = _position(node, 1, 0, len(tensors))
            if position is not None:
                subgraphs.replace(raw, [], [tensors[position]])
                return True
        elif raw.op_type == "SequenceLength":
            length = np.array(len(tensors), np.int64)
            subgraphs.replace(raw, [], [subgraphs.constant(graph, node.label, length)])
            return True
        elif raw.op_type == "ConcatFromSequence" and tensors:
            axis = node.attr_int("axis")
            if node.attr_int("new_axis", 0):
                nodes, result = subgraphs.stack(graph, tensors, axis, node.label, node.version)
            else:
                nodes = [ir.node("Concat", tensors, {"axis": axis}, name=node.label)]
                result = nodes[0].outputs[0]
            subgraphs.replace(raw, nodes, [result])
            return True
        return False

    def _split(self, node: Node) -> None:
        raw, graph = node.raw, node.raw.graph
        assert graph is not None
        bounds = _bounds(node)
        if bounds is None:
            count = node.shape(1) if node.has(1) else ()
            if len(count) == 1 and count[0].is_Integer and self.version >= 13:
                # The parts' sizes are a matter of data, their number is not.
                part = ir.node(
                    "Split",
                    raw.inputs[:2],
                    {"axis": node.axis(0)},
                    num_outputs=int(count[0]),
                    name=node.label,
                )
                graph.insert_before(raw, part)
                self.tensors[raw.outputs[0]] = list(part.outputs)
            return
        axis = node.axis(0)
        tensors: list[ir.Value] = []
        for begin, end in bounds:
            label = f"{node.label}/{len(tensors)}"
            if not node.has(1) and not node.attr_int("keepdims", 1):
                at = subgraphs.constant(graph, f"{label}/at", np.array(begin, np.int64))
                part = ir.node("Gather", [raw.inputs[0], at], {"axis": axis}, name=label)
            else:
                operands = [
                    subgraphs.constant(graph, f"{label}/{name}", np.array([number], np.int64))
                    for name, number in (("from", begin), ("to", end), ("axis", axis))
                ]
                part = ir.node("Slice", [raw.inputs[0], *operands], name=label)
            graph.insert_before(raw, part)
            tensors.append(part.outputs[0])
        self.tensors[raw.outputs[0]] = tensors


def _position(node: Node, operand: int, default: int, count: int) -> int | None:
    """A position in a sequence, from the front; None where it is not known or out of range."""
    if not node.has(operand):
        return default if default < count else None
    array = constant_array(node.input(operand))
    if array is None or array.size != 1:
        return None
    # An insertion counts negative positions from the last tensor, as everything else does.
    length = count - 1 if node.op_type == "SequenceInsert" else count
    position = int(array.item())
    position = position + length if position < 0 else position
    return position if 0 <= position < count else None


def _bounds(node: Node) -> list[tuple[int, int]] | None:
    """Where the parts of a SplitToSequence begin and end; None where sizes decide about that."""
    try:
        extent = node.shape(0)[node.axis(0)]
    except ValueError:
        return None
    if node.has(1):
        array = constant_array(node.input(1))
        if array is None:
            return None
        if array.ndim == 1:
            ends = np.cumsum(array).tolist()
            if extent.is_Integer and (ends[-1] if ends else 0) != int(extent):
                return None
            return list(zip([0, *ends], ends, strict=False))
        size = int(array.item())
    else:
        size = 1
    if not extent.is_Integer or size < 1:
        return None
    total = int(extent)
    return [(begin, min(begin + size, total)) for begin in range(0, total, size)]
