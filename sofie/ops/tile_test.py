"""Tile against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize(
    "repeats", [[1, 1, 1], [2, 1, 1], [1, 3, 1], [2, 3, 4], [1, 1, 5], [0, 1, 2]]
)
def test_repeats(repeats: list[int]) -> None:
    model = graph(
        [helper.make_node("Tile", ["x", "r"], ["y"])],
        {"x": ("float32", ["N", 3, 1])},
        {"y": "float32"},
        {"r": np.array(repeats, np.int64)},
    )
    hold(model, [{"N": 2}, {"N": 1}, {"N": 5}])
