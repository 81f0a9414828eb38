"""Gather against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_every_axis(axis: int, dtype: str) -> None:
    model = graph(
        [helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)],
        {"x": ("float32", [3, 4, 5]), "i": (dtype, [2, 2])},
        {"y": "float32"},
    )
    hold(model, [{}], {"i": np.array([[0, 2], [-1, -3]], dtype)})


def test_along_a_symbolic_axis() -> None:
    model = graph(
        [helper.make_node("Gather", ["x", "i"], ["y"], axis=0)],
        {"x": ("float32", ["N", 2]), "i": ("int64", [3])},
        {"y": "float32"},
    )
    hold(model, [{"N": 3}, {"N": 7}, {"N": 4}], {"i": np.array([2, 0, -3])})


def test_of_a_shape_is_arithmetic_on_sizes() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["d"], axis=0),
        helper.make_node("Mul", ["d", "d"], ["y"]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", "M"])}, {"y": "int64"}, {"i": np.array(1)})
    hold(model, [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 0}])


def test_reductions_through_reductions() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["r"], keepdims=0),
        helper.make_node("ReduceMin", ["k", "axis"], ["i"], keepdims=0),
        helper.make_node("Gather", ["r", "i"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", [10, 4]), "k": ("int64", ["M", 3])},
        {"y": "float32"},
        {"axis": np.array([1], np.int64)},
    )
    hold(model, [{"M": 2}, {"M": 1}, {"M": 5}])


def test_an_empty_axis_has_nothing_to_gather() -> None:
    model = graph(
        [helper.make_node("Gather", ["x", "i"], ["y"], name="pick")],
        {"x": ("float32", ["N", 2]), "i": ("int64", ["M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 0, "M": 0}, {"N": 3, "M": 0}])
    inputs: dict[str, Array] = {"x": np.ones((0, 2), np.float32), "i": np.zeros(1, np.int64)}
    with pytest.raises(interpreter.RequirementError, match="pick: indices into an axis without"):
        interpreter.run(compile_graph(model), inputs)
