"""CenterCropPad against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("wanted", [[4, 6], [5, 3], [0, 1]])
def test_crop_and_pad(wanted: list[int]) -> None:
    model = graph(
        [helper.make_node("CenterCropPad", ["x", "s"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"s": np.array(wanted, np.int64)},
    )
    hold(model, [{"N": n, "M": m} for n, m in ((4, 6), (7, 3), (3, 8), (10, 1), (0, 2))])


def test_axes() -> None:
    model = graph(
        [helper.make_node("CenterCropPad", ["x", "s"], ["y"], axes=[-1, 0])],
        {"x": ("int64", ["N", 2, "M"])},
        {"y": "int64"},
        {"s": np.array([4, 3], np.int64)},
    )
    hold(model, [{"N": n, "M": m} for n, m in ((4, 6), (1, 3), (2, 9))])
