"""DFT against the reference."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": 2, "L": 8}, {"N": 1, "L": 5}, {"N": 0, "L": 3}, {"N": 3, "L": 2}]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("parts", "inverse", "onesided"), [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1)]
)
def test_kinds(dtype: str, parts: int, inverse: int, onesided: int) -> None:
    model = graph(
        [helper.make_node("DFT", ["x"], ["y"], inverse=inverse, onesided=onesided)],
        {"x": (dtype, ["N", "L", parts])},
        {"y": (dtype, ["N", "K", "P"])},
    )
    hold(model, _CASES, tolerance=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("length", [3, 6, 9, 12])
@pytest.mark.parametrize(
    ("parts", "inverse", "onesided"), [(1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1)]
)
def test_lengths(length: int, parts: int, inverse: int, onesided: int) -> None:
    model = graph(
        [helper.make_node("DFT", ["x", "n"], ["y"], inverse=inverse, onesided=onesided)],
        {"x": ("float32", ["N", 6, parts])},
        {"y": ("float32", ["N", "K", "P"])},
        {"n": np.array(length, np.int64)},
    )
    hold(model, [{"N": 2}, {"N": 1}])


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("opset", [17, 20])
def test_axes(axis: int, opset: int) -> None:
    attributes: dict[str, Any] = {"axis": axis} if opset == 17 else {}
    constants = {} if opset == 17 else {"a": np.array(axis, np.int64)}
    model = graph(
        [helper.make_node("DFT", ["x", "", *constants], ["y"], onesided=1, **attributes)],
        {"x": ("float32", ["N", 4, "L", 1])},
        {"y": ("float32", ["A", "B", "C", 2])},
        constants,
        opset=opset,
    )
    hold(model, [{"N": 3, "L": 7}, {"N": 1, "L": 1}])


def test_an_axis_and_a_length_that_are_inputs() -> None:
    model = graph(
        [helper.make_node("DFT", ["x", "n", "a"], ["y"])],
        {"x": ("float32", ["N", 4, 2]), "n": ("int64", []), "a": ("int64", [])},
        {"y": ("float32", ["A", "B", 2])},
    )
    numbers = [(2, 4, 1), (3, 5, 0), (1, 2, -2)]
    hold(model, [{"N": n, "n": length, "a": axis} for n, length, axis in numbers])
    x = np.ones((2, 4, 2), np.float32)
    for length, axis, reason in ((0, 1, "length 0"), (4, 2, "complex numbers"), (4, 3, "range")):
        with pytest.raises(interpreter.RequirementError, match=reason):
            interpreter.run(
                compile_graph(model), {"x": x, "n": np.array(length), "a": np.array(axis)}
            )
