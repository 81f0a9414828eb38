"""The passes, in the order in which they run."""

from __future__ import annotations

from sofie.importer.load import Model, infer_shapes
from sofie.passes import (
    clean,
    fold_batch_normalization,
    fuse_activation,
    fuse_attention,
    reduce_rank,
)


def run(
    model: Model, low_rank: reduce_rank.LowRank | None = None
) -> tuple[reduce_rank.Reduced, ...]:
    """Runs them all; changes the model in place. Says which matrices have a lower rank now."""
    clean.run(model)
    fold_batch_normalization.run(model)
    reduced = () if low_rank is None else reduce_rank.run(model, low_rank)
    fuse_activation.run(model)
    fuse_attention.run(model)
    clean.run(model)
    infer_shapes(model.ir_model)
    return reduced
