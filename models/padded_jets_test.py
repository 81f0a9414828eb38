"""Jets of different sizes as one batch."""

from __future__ import annotations

import numpy as np

from models import padded_jets


def test_padded() -> None:
    arrays = {
        "pf_offsets": np.array([0, 2, 3, 6]),
        "pf_points": np.arange(12, dtype=np.float32).reshape(6, 2),
        "pf_features": np.arange(18, dtype=np.float32).reshape(6, 3),
        "sv_offsets": np.array([0, 0, 0, 1]),
        "sv_points": np.ones((1, 2), np.float32),
        "sv_features": np.ones((1, 4), np.float32),
    }
    inputs = padded_jets.padded(arrays, np.array([1, 0]))
    np.testing.assert_array_equal(inputs["pf_points"], [[[4, 0], [5, 0]], [[0, 2], [1, 3]]])
    np.testing.assert_array_equal(inputs["pf_mask"], [[[1, 0]], [[1, 1]]])
    np.testing.assert_array_equal(inputs["pf_features"][0], [[6, 0], [7, 0], [8, 0]])
    # Neither has a vertex: one of padding, for ONNX Runtime.
    assert inputs["sv_features"].shape == (2, 4, 1)
    assert not inputs["sv_mask"].any()
