"""Unique against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_all_outputs(dtype: str, is_sorted: int) -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], sorted=is_sorted)],
        {"x": (dtype, ["N"])},
        {"y": dtype, "i": "int64", "v": "int64", "c": "int64"},
    )
    rng = np.random.default_rng(3)
    hold(model, [{"x": rng.integers(-3, 4, n).astype(dtype)} for n in (10, 1, 30, 3)])


def test_values_alone() -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y"], axis=0)], {"x": ("int32", ["N"])}, {"y": "int32"}
    )
    hold(model, [{"x": np.array(x, np.int32)} for x in ([3, 3, 1], [5], [2, 2, 2, 2], [4, 1, 3])])
