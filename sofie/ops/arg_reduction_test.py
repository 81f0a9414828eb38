"""ArgMax and ArgMin against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 40, "M": 2}]


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_ties(op_type: str, axis: int, keepdims: int, last: int) -> None:
    model = graph(
        [
            helper.make_node(
                op_type, ["x"], ["y"], axis=axis, keepdims=keepdims, select_last_index=last
            )
        ],
        {"x": ("float32", ["N", 4, "M"])},
        {"y": "int64"},
    )
    hold(model, _CASES, values=np.round)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["float64", "int8", "int32", "int64", "uint8"])
def test_types(op_type: str, dtype: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"])], {"x": (dtype, ["N", "M"])}, {"y": "int64"}
    )
    hold(model, _CASES)


def test_an_element_of_a_computed_tensor_at_the_place() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ArgMax", ["s"], ["i"], axis=1, keepdims=0),
        helper.make_node("Add", ["i", "start"], ["y"]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", "M"]), "start": ("int64", ["N"])}, {"y": "int64"})
    assert len(hold(model, _CASES).steps) == 1
