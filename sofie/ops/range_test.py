"""Range against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold


def test_limit_from_a_size() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Squeeze", ["s"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["r"]),
        helper.make_node("Add", ["r", "r"], ["y"]),
    ]
    constants = {"zero": np.array(0), "one": np.array(1)}
    model = graph(nodes, {"x": ("float32", ["N"])}, {"y": "int64"}, constants)
    hold(model, [{"N": 3}, {"N": 0}, {"N": 8}])


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
def test_bounds_from_data(dtype: str) -> None:
    model = graph(
        [helper.make_node("Range", ["start", "limit", "delta"], ["y"])],
        {name: (dtype, []) for name in ("start", "limit", "delta")},
        {"y": dtype},
    )
    names = ("start", "limit", "delta")
    bounds: list[tuple[float, float, float]] = [
        (0, 5, 1),
        (10, -3, -4),
        (3, 3, 1),
        (3, 2, 1),
        (-7, 100, 9),
    ]
    if dtype.startswith("float"):
        bounds += [(0, 1, 0.25), (0.5, -2, -0.75)]
    hold(model, [dict(zip(names, np.array(b, dtype), strict=True)) for b in bounds])


def test_a_delta_of_0_is_an_error() -> None:
    model = graph(
        [helper.make_node("Range", ["zero", "ten", "delta"], ["y"], name="count")],
        {"delta": ("int64", [])},
        {"y": "int64"},
        {"zero": np.array(0), "ten": np.array(10)},
    )
    with pytest.raises(interpreter.RequirementError, match="count: .* delta of 0"):
        interpreter.run(compile_graph(model), {"delta": np.array(0)})
