"""CumSum and CumProd against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 2, "M": 5}, {"N": 1, "M": 1}, {"N": 3, "M": 70}]


@pytest.mark.parametrize("op_type", ["CumSum", "CumProd"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_every_axis(op_type: str, axis: int, exclusive: int, reverse: int) -> None:
    model = graph(
        [helper.make_node(op_type, ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)],
        {"x": ("float32", ["N", 3, "M"])},
        {"y": ("float32", ["N", 3, "M"])},
        {"axis": np.array(axis)},
        opset=26,
    )

    def along(x: np.ndarray) -> np.ndarray:
        x = np.flip(x, axis) if reverse else x
        function = np.add if op_type == "CumSum" else np.multiply
        out = function.accumulate(x, axis=axis)
        if exclusive:
            first = np.full_like(out.take([0], axis), op_type == "CumProd")
            out = np.concatenate([first, out.take(range(out.shape[axis] - 1), axis)], axis)
        return np.flip(out, axis) if reverse else out

    hold(model, _CASES, reference=lambda inputs: [along(inputs["x"])])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_types(dtype: str) -> None:
    model = graph(
        [helper.make_node("CumSum", ["x", "axis"], ["y"])],
        {"x": (dtype, ["N", "M"])},
        {"y": dtype},
        {"axis": np.array(1)},
    )
    hold(model, [*_CASES, {"N": 0, "M": 3}, {"N": 3, "M": 0}])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_the_axis_is_an_input(axis: int) -> None:
    model = graph(
        [helper.make_node("CumSum", ["x", "axis"], ["y"])],
        {"x": ("float32", ["N", 3, "M"]), "axis": ("int64", [])},
        {"y": "float32"},
    )
    hold(model, _CASES, {"axis": np.array(axis)})
