"""RoiAlign and MaxRoiPool against ONNX Runtime."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Array, graph, hold

_REGIONS = np.array(
    [[1, 1, 9, 6], [0, 2, 3, 3], [-4, -3, 20, 30], [5, 5, 4, 4], [2.3, 1.7, 2.9, 8.1]], np.float32
)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("opset", [10, 16])
def test_roi_align(mode: str, ratio: int, opset: int) -> None:
    model = graph(
        [
            helper.make_node(
                "RoiAlign",
                ["x", "r", "i"],
                ["y"],
                mode=mode,
                sampling_ratio=ratio,
                output_height=3,
                output_width=2,
                spatial_scale=0.8,
            )
        ],
        {"x": ("float32", ["N", 2, "H", 7]), "r": ("float32", ["R", 4]), "i": ("int64", ["R"])},
        {"y": "float32"},
        opset=opset,
    )
    for count, n in ((5, 2), (1, 1), (0, 1)):
        feeds: dict[str, Array] = {"r": _REGIONS[:count], "i": np.arange(count) % n}
        hold(model, [{"N": n, "H": 8, "R": count}], feeds, tolerance=1e-4, against_runtime=True)


def test_aligned_to_output_pixels() -> None:
    model = graph(
        [
            helper.make_node(
                "RoiAlign",
                ["x", "r", "i"],
                ["y"],
                coordinate_transformation_mode="output_half_pixel",
                output_height=2,
                output_width=2,
            )
        ],
        {"x": ("float32", ["N", 2, 8, 7]), "r": ("float32", ["R", 4]), "i": ("int64", ["R"])},
        {"y": "float32"},
    )
    feeds: dict[str, Array] = {"r": _REGIONS, "i": np.zeros(5, np.int64)}
    hold(model, [{"N": 1, "R": 5}], feeds, tolerance=1e-4, against_runtime=True)


def test_max_roi_pool() -> None:
    model = graph(
        [helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[3, 2], spatial_scale=0.5)],
        {"x": ("float32", ["N", 2, "H", 7]), "r": ("float32", ["R", 5])},
        {"y": "float32"},
    )
    regions = np.array([[0, 1, 1, 9, 6], [1, 0, 4, 6, 10], [1, 12, 3, 13, 4]], np.float32)
    for count in (3, 1):
        feeds = {"r": regions[:count]}
        hold(model, [{"N": 2, "H": 8, "R": count}], feeds, against_runtime=True)
