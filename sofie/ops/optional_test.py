"""OptionalGetElement and OptionalHasElement of tensors, and of nothing."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_a_tensor_is_its_own_element(dtype: str) -> None:
    model = graph(
        [
            helper.make_node("OptionalGetElement", ["x"], ["y"]),
            helper.make_node("OptionalHasElement", ["x"], ["there"]),
        ],
        {"x": (dtype, ["N", 2])},
        {"y": (dtype, ["N", 2]), "there": ("bool", [])},
    )
    hold(
        model,
        [{"N": 3}, {"N": 0}, {"N": 1}],
        reference=lambda inputs: [inputs["x"], np.array(True)],
    )


@pytest.mark.parametrize("names", [[], [""]])
def test_nothing_has_no_element(names: list[str]) -> None:
    model = graph(
        [
            helper.make_node("OptionalHasElement", names, ["there"]),
            helper.make_node("Identity", ["x"], ["y"]),
        ],
        {"x": ("float32", ["N"])},
        {"there": ("bool", []), "y": ("float32", ["N"])},
    )
    hold(model, [{"N": 2}], reference=lambda inputs: [np.array(False), inputs["x"]])
