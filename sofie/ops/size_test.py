"""Size against the reference."""

import numpy as np
from onnx import helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 4, "M": 3}, {"N": 0, "M": 2}, {"N": 1, "M": 1}]


def test_the_number_of_elements() -> None:
    model = graph(
        [helper.make_node("Size", ["x"], ["y"])], {"x": ("float32", ["N", "M", 2])}, {"y": "int64"}
    )
    hold(model, _CASES)


def test_as_a_size() -> None:
    model = graph(
        [
            helper.make_node("Size", ["x"], ["n"]),
            helper.make_node("Range", ["zero", "n", "one"], ["y"]),
        ],
        {"x": ("bool", ["N", "M"])},
        {"y": "int64"},
        {"zero": np.array(0), "one": np.array(1)},
    )
    hold(model, _CASES)
