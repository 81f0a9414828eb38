"""Gives a Relu to the Conv or Gemm before it, as the attribute ``activation``.

Only where nothing else reads the intermediate, which is no graph output either. The lowering makes
the activation the library call's epilogue.
"""

from __future__ import annotations

import onnx_ir as ir

from sofie.importer.load import Model
from sofie.passes.rewrite import replace

_FUSABLE = ("Conv", "Gemm")


def run(model: Model) -> None:
    """Changes the model in place."""
    for node in list(model.graph):
        if node.op_type != "Relu" or node.domain:
            continue
        source = node.inputs[0]
        producer = None if source is None else source.producer()
        if source is None or producer is None:
            continue
        if producer.op_type not in _FUSABLE or producer.domain:
            continue
        if (
            len(source.uses()) != 1
            or source.is_graph_output()
            or "activation" in producer.attributes
        ):
            continue
        attributes = dict(producer.attributes)
        attributes["activation"] = ir.AttrString("activation", "Relu")
        replace(
            model, [producer, node], producer.op_type, list(producer.inputs), attributes.values()
        )
