"""PRelu against the reference, at several sizes."""

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 2, "C": 3, "L": 5}, {"N": 1, "C": 1, "L": 1}, {"N": 4, "C": 2, "L": 7}]


@pytest.mark.parametrize("slope", [["C", 1], ["N", "C", "L"], ["L"], [1], []])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_slopes_broadcast(slope: Dims, dtype: str) -> None:
    model = graph(
        [helper.make_node("PRelu", ["x", "slope"], ["y"])],
        {"x": (dtype, ["N", "C", "L"]), "slope": (dtype, slope)},
        {"y": dtype},
    )
    hold(model, _CASES)
