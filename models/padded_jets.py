"""Jets of a file as the inputs of ParticleNet; training/make_jets.py says what the file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]


def padded(arrays: Mapping[str, AnyArray], jets: AnyArray) -> dict[str, AnyArray]:
    """The model's inputs for these jets, padded to the largest."""
    inputs: dict[str, AnyArray] = {}
    for kind in ("pf", "sv"):
        offsets = arrays[f"{kind}_offsets"]
        counts = np.diff(offsets)[jets]
        # ONNX Runtime takes no tensors without elements: at least one vertex, which may be padding.
        real = np.arange(max(1, counts.max())) < counts[:, None]
        rows = (offsets[:-1][jets][:, None] + np.arange(real.shape[1]))[real]
        for name in ("points", "features"):
            values = arrays[f"{kind}_{name}"]
            table = np.zeros((*real.shape, values.shape[1]), np.float32)
            table[real] = values[rows]
            inputs[f"{kind}_{name}"] = np.ascontiguousarray(table.transpose(0, 2, 1))
        inputs[f"{kind}_mask"] = real[:, None].astype(np.float32)
    return inputs
