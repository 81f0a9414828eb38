"""Reshape against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": 2, "M": 6}, {"N": 1, "M": 1}, {"N": 5, "M": 3}]


@pytest.mark.parametrize(
    "target",
    [[-1], [0, -1], [-1, 4], [0, 0, 2, 2], [0, 2, 2, -1], [4, -1], [2, -1, 2], [0, 0, 4, 1]],
)
def test_targets(target: list[int]) -> None:
    model = graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        {"x": ("float32", ["N", "M", 4])},
        {"y": "float32"},
        {"s": np.array(target, np.int64)},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("target", [[0], [0, 7], [5, 0, 2]])
def test_of_nothing(target: list[int]) -> None:
    """An axis that has no element for any size, which the index can't be divided by."""
    nodes = [
        helper.make_node("Slice", ["x", "first", "end", "axis"], ["s"]),
        helper.make_node("Reshape", ["s", "target"], ["y"], allowzero=1),
    ]
    numbers = {"first": [3], "end": [3], "axis": [1], "target": target}
    model = graph(
        nodes,
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
        {name: np.array(value, np.int64) for name, value in numbers.items()},
    )
    hold(model, [{"N": 2}, {"N": 0}])


@pytest.mark.parametrize("target", [[-1], [4, -1], [0, -1]])
def test_after_a_transpose(target: list[int]) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
        helper.make_node("Reshape", ["t", "s"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", ["N", "M", 4])},
        {"y": "float32"},
        {"s": np.array(target, np.int64)},
    )
    hold(model, _CASES)


def test_of_a_computed_value_then_transposed_back() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Reshape", ["r", "s"], ["f"]),
        helper.make_node("Reshape", ["f", "b"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", ["N", "M", 4])},
        {"y": "float32"},
        {"s": np.array([-1, 2], np.int64), "b": np.array([2, -1], np.int64)},
    )
    hold(model, _CASES)


def test_shape_from_other_sizes() -> None:
    nodes = [
        helper.make_node("Shape", ["z"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    model = graph(
        nodes, {"x": ("float32", ["N", "M"]), "z": ("float32", ["M", "N"])}, {"y": "float32"}
    )
    hold(model, _CASES)


def test_sizes_that_do_not_fit_are_refused() -> None:
    model = graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
        {"s": np.array([2, 6], np.int64)},
    )
    program = compile_graph(model)
    interpreter.run(program, {"x": np.ones((3, 4), np.float32)})
    with pytest.raises(interpreter.RequirementError, match="Reshape of 8 elements into 12"):
        interpreter.run(program, {"x": np.ones((2, 4), np.float32)})
