"""Squeeze against the reference."""

import numpy as np
from onnx import helper

from sofie.testing.operators import graph, hold


def test_axes_as_input_and_negative() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x", "a"], ["y"])],
        {"x": ("float32", [1, "N", 1, 3])},
        {"y": "float32"},
        {"a": np.array([0, -2], np.int64)},
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


def test_axes_as_attribute() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x"], ["y"], axes=[1])],
        {"x": ("float32", ["N", 1, 3])},
        {"y": "float32"},
        opset=11,
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])
