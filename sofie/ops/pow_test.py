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


@pytest.mark.parametrize("base", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("exponent", ["float32", "float64", "int8", "int64", "uint8"])
def test_exponents_of_other_types(base: str, exponent: str) -> None:
    model = graph(
        [helper.make_node("Pow", ["x", "e"], ["y"])],
        {"x": (base, ["N"])},
        {"y": base},
        {"e": np.array([3], exponent)},
    )
    hold(model, [{"N": 3}, {"N": 8}, {"N": 1}])


def test_negative_exponents_of_integers() -> None:
    model = graph(
        [helper.make_node("Pow", ["x", "e"], ["y"])],
        {"x": ("int64", ["N"]), "e": ("int64", ["M", 1])},
        {"y": "int64"},
    )
    feeds = {"x": np.array([-3, -1, 1, 2]), "e": np.array([[-2], [-1], [0], [1], [3]])}
    expected = np.array(
        [[0, 1, 1, 0], [0, -1, 1, 0], [1, 1, 1, 1], [-3, -1, 1, 2], [-27, -1, 1, 8]]
    )
    hold(model, [{"N": 4, "M": 5}], feeds, reference=lambda _: [expected])
