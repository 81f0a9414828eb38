"""EyeLike against the reference."""

import pytest
from onnx import TensorProto, helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 3, "M": 4}, {"N": 4, "M": 2}, {"N": 0, "M": 2}, {"N": 1, "M": 1}]


@pytest.mark.parametrize("k", [0, 1, -2, 9])
def test_diagonals(k: int) -> None:
    model = graph(
        [helper.make_node("EyeLike", ["x"], ["y"], k=k)],
        {"x": ("int32", ["N", "M"])},
        {"y": "int32"},
    )
    hold(model, _CASES)


def test_a_type_of_its_own() -> None:
    model = graph(
        [helper.make_node("EyeLike", ["x"], ["y"], dtype=TensorProto.DOUBLE)],
        {"x": ("bool", ["N", "M"])},
        {"y": "float64"},
    )
    hold(model, _CASES)
