"""Unsqueeze against the reference."""

import numpy as np
from onnx import helper

from sofie.testing.operators import graph, hold


def test_several_axes() -> None:
    model = graph(
        [helper.make_node("Unsqueeze", ["x", "a"], ["y"])],
        {"x": ("float32", ["N", 3])},
        {"y": "float32"},
        {"a": np.array([0, -1, 2], np.int64)},
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])
