"""The passes, in the order in which they run."""

from __future__ import annotations

from sofie.importer.load import Model, infer_shapes
from sofie.passes import clean, fold_batch_normalization, fuse_activation, fuse_attention

_PASSES = (clean, fold_batch_normalization, fuse_activation, fuse_attention, clean)


def run(model: Model) -> None:
    """Runs them all; changes the model in place."""
    for one in _PASSES:
        one.run(model)
    infer_shapes(model.ir_model)
