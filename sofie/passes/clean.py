"""Removes what has no effect: identities, repeated computations, nodes that nothing reads."""

from __future__ import annotations

from onnx_ir.passes import common

from sofie.importer.load import Model


def run(model: Model) -> None:
    """Changes the model in place."""
    common.IdentityEliminationPass()(model.ir_model)
    common.CommonSubexpressionEliminationPass()(model.ir_model)
    common.RemoveUnusedNodesPass()(model.ir_model)
