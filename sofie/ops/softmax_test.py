"""Softmax against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_every_axis(axis: int) -> None:
    model = graph(
        [helper.make_node("Softmax", ["x"], ["y"], axis=axis)],
        {"x": ("float32", ["N", 3, "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 70}])
