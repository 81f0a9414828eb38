"""Says, before anything is generated, everything about a model that can't be compiled."""

from __future__ import annotations

import onnx_ir as ir

from sofie.importer import sequences
from sofie.importer.errors import ModelError
from sofie.importer.load import Model
from sofie.ir import dims
from sofie.ir.dtype import from_onnx
from sofie.ir.node import Node, version_of
from sofie.ops import registry

# sofie::kMaxRank, what a view can say.
_HIGHEST_RANK = 8


def check(model: Model) -> None:
    """Goes through the whole model.

    Raises:
      ModelError: lists every node that is in the way, with operator, reason and remedy.
    """
    problems: list[str] = []
    for raw in ir.traversal.RecursiveGraphIterator(model.graph):
        node = Node(raw, version_of(model.ir_model, raw.domain))
        problems += [f"  {node.label} ({node.op_type}): {why}" for why in _reasons(node)]
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.shape is not None and len(value.shape) > _HIGHEST_RANK:
            problems.append(f"  {value.name!r}: rank {len(value.shape)} is above {_HIGHEST_RANK}")
        if from_onnx(value.dtype) is None:
            problems.append(f"  {value.name!r}: the element type {value.dtype} is not supported")
    if problems:
        count = len(problems)
        raise ModelError(
            f"{count} {'thing' if count == 1 else 'things'} in this model can't be compiled:\n"
            + "\n".join(problems)
            + "\nSee docs/support_matrix.md for what is supported; export the model with other "
            "operators, or add the operator (CONTRIBUTING.md)."
        )


def _reasons(node: Node) -> list[str]:
    if node.op_type in sequences.OPERATORS:
        return ["a sequence whose length or whose positions are not known at build time"]
    entry = registry.find(node)
    if entry is None:
        ranges = registry.opsets(node.raw.domain, node.raw.op_type)
        if not ranges:
            return ["the operator is not supported"]
        spans = ", ".join(f"{a} to {'the newest' if b is None else b}" for a, b in ranges)
        return [f"opset {node.version} is not supported (opsets {spans} are); convert the model"]
    reasons: list[str] = []
    try:
        if entry.dtypes is not None and node.arity and node.dtype(0) not in entry.dtypes:
            supported = ", ".join(sorted(t.name for t in entry.dtypes))
            return [f"the element type {node.dtype(0).name} is not supported ({supported} are)"]
        reasons += entry.check(node)
        for position, output in enumerate(node.raw.outputs):
            if not node.is_used(position):
                continue
            node.out_dtype(position)
            symbols = {s for d in node.out_shape(position) for s in d.free_symbols}
            if not all(map(dims.is_known_on_host, symbols)):
                reasons.append(f"the shape of its output {output.name!r} depends on data")
    except ValueError as error:
        reasons.append(str(error))
    return reasons
