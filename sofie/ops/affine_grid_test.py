"""AffineGrid against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 1, 3, 2, 4], [2, 3, 4, 1]])
def test_sizes(aligned: int, size: list[int]) -> None:
    rank = len(size) - 2
    model = graph(
        [helper.make_node("AffineGrid", ["t", "s"], ["y"], align_corners=aligned)],
        {"t": ("float32", ["N", rank, rank + 1])},
        {"y": "float32"},
        {"s": np.array(size, np.int64)},
    )
    hold(model, [{"N": 2}])


def test_a_size_in_terms_of_sizes() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("AffineGrid", ["t", "s"], ["g"]),
        helper.make_node("GridSample", ["x", "g"], ["y"]),
    ]
    inputs: dict[str, tuple[str, Dims]] = {
        "x": ("float32", ["N", 2, "H", "W"]),
        "t": ("float32", ["N", 2, 3]),
    }
    model = graph(nodes, inputs, {"y": "float32"})
    hold(model, [{"N": 2, "H": 4, "W": 3}, {"N": 1, "H": 2, "W": 5}], tolerance=1e-3)
