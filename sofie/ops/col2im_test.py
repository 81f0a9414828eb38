"""Col2Im against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 2]])
def test_two_axes(stride: int, dilation: int, pads: list[int]) -> None:
    spans = [2 * dilation + 1, dilation + 1]
    image = [7, 6]
    counts = [(image[a] + pads[a] + pads[2 + a] - spans[a]) // stride + 1 for a in range(2)]
    model = graph(
        [
            helper.make_node(
                "Col2Im",
                ["x", "image", "block"],
                ["y"],
                strides=[stride] * 2,
                dilations=[dilation] * 2,
                pads=pads,
            )
        ],
        {"x": ("float32", ["N", 2 * 6, counts[0] * counts[1]])},
        {"y": "float32"},
        {"image": np.array(image, np.int64), "block": np.array([3, 2], np.int64)},
    )
    hold(model, [{"N": 2}, {"N": 1}])


def test_an_image_in_terms_of_sizes() -> None:
    model = graph(
        [
            helper.make_node("Shape", ["like"], ["image"], start=2),
            helper.make_node("Col2Im", ["x", "image", "block"], ["z"]),
            helper.make_node("Add", ["z", "like"], ["y"]),
        ],
        {"x": ("float32", ["N", 4, "L"]), "like": ("float32", ["N", 2, "M", 1])},
        {"y": "float32"},
        {"block": np.array([2, 1], np.int64)},
    )
    hold(model, [{"N": 2, "L": 4, "M": 5}, {"N": 1, "L": 1, "M": 2}])
