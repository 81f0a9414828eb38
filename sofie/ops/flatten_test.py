"""Flatten against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_every_axis(axis: int) -> None:
    model = graph(
        [helper.make_node("Flatten", ["x"], ["y"], axis=axis)],
        {"x": ("float32", ["N", "M", 4])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 4, "M": 5}])
