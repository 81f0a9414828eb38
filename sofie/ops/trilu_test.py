"""Trilu against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 3, "M": 4}, {"N": 4, "M": 2}, {"N": 0, "M": 2}, {"N": 1, "M": 1}]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_both_sides(upper: int, dtype: str) -> None:
    model = graph(
        [helper.make_node("Trilu", ["x"], ["y"], upper=upper)],
        {"x": (dtype, [2, "N", "M"])},
        {"y": dtype},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-3, 1, 7])
def test_a_diagonal_from_data(upper: int, k: int) -> None:
    model = graph(
        [helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)],
        {"x": ("float32", ["N", "M"]), "k": ("int64", [])},
        {"y": "float32"},
    )
    hold(model, [c for c in _CASES if c["N"]], {"k": np.array(k)})
