"""Pow against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.0, -1.0])
def test_constant_exponent(exponent: float) -> None:
    model = graph(
        [helper.make_node("Pow", ["x", "e"], ["y"])],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
        {"e": np.array(exponent, np.float32)},
    )
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])


def test_exponent_of_another_type() -> None:
    model = graph(
        [helper.make_node("Pow", ["x", "e"], ["y"])],
        {"x": ("float32", ["N"])},
        {"y": "float32"},
        {"e": np.array([2.0], np.float64)},
    )
    hold(model, [{"N": 3}, {"N": 8}, {"N": 1}])
