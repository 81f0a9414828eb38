"""The Reduce operators against the reference."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold

_CASES = [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 2}]
_OPERATORS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize("axes", [[0], [1], [2], [-1], [0, 2], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(op_type: str, axes: list[int], keepdims: int) -> None:
    model = graph(
        [helper.make_node(op_type, ["x", "a"], ["y"], keepdims=keepdims)],
        {"x": ("float32", ["N", 4, "M"])},
        {"y": "float32"},
        {"a": np.array(axes, np.int64)},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32"])
def test_types(op_type: str, dtype: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"])],
        {"x": (dtype, ["N", "M"])},
        {"y": dtype},
        opset=18,
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        """ONNX's evaluator rounds means and logarithms of integers before they are complete."""
        x = inputs["x"]
        every: dict[str, Any] = {"axis": (0, 1), "keepdims": True}
        real = x.astype(np.float64)
        results = {
            "ReduceL1": lambda: np.abs(x).sum(**every),
            "ReduceL2": lambda: np.sqrt((real * real).sum(**every)),
            "ReduceLogSum": lambda: np.log(real.sum(**every)),
            "ReduceLogSumExp": lambda: np.log(np.exp(real).sum(**every)),
            "ReduceMax": lambda: x.max(**every),
            "ReduceMean": lambda: (
                np.trunc(real.mean(**every)) if x.dtype.kind in "iu" else real.mean(**every)
            ),
            "ReduceMin": lambda: x.min(**every),
            "ReduceProd": lambda: x.prod(**every),
            "ReduceSum": lambda: x.sum(**every),
            "ReduceSumSquare": lambda: (x * x).sum(**every),
        }
        return [results[op_type]().astype(x.dtype)]

    hold(model, _CASES, values=lambda x: np.abs(x) + 1, reference=reference)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_narrow_types(op_type: str, dtype: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x", "a"], ["y"])],
        {"x": (dtype, ["N", "M"])},
        {"y": dtype},
        {"a": np.array([1], np.int64)},
    )
    hold(model, _CASES)


def test_large_numbers_do_not_overflow_in_a_sum_of_exponentials() -> None:
    model = graph(
        [helper.make_node("ReduceLogSumExp", ["x", "a"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"a": np.array([1], np.int64)},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"].astype(np.float64)
        return [np.logaddexp.reduce(x, axis=1, keepdims=True).astype(np.float32)]

    hold(model, _CASES, values=lambda x: 1000 * x, reference=reference)


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_axes_as_attribute(op_type: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"], axes=None if op_type == "ReduceSum" else [1])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        opset=13,
    )
    hold(model, _CASES)


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_no_axes_reduces_nothing_where_asked(op_type: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"], noop_with_empty_axes=1)],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
    )
    hold(model, _CASES)


def test_empty_rows_give_the_identity() -> None:
    model = graph(
        [helper.make_node("ReduceSum", ["x", "a"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"a": np.array([1], np.int64)},
    )
    hold(model, [{"N": 3, "M": 0}, {"N": 0, "M": 3}, {"N": 2, "M": 2}])


def test_what_follows_becomes_the_epilogue() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ReduceMean", ["s", "a"], ["m"], keepdims=0),
        helper.make_node("Add", ["m", "b"], ["z"]),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", ["N", 4, "M"]), "b": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"a": np.array([1], np.int64)},
    )
    program = hold(model, _CASES)
    assert len(program.steps) == 1


def test_a_result_with_two_readers_is_computed_once() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "a"], ["m"], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "m"], ["y"]),
    ]
    model = graph(
        nodes, {"x": ("float32", ["N", "M"])}, {"y": "float32"}, {"a": np.array([1], np.int64)}
    )
    program = hold(model, _CASES)
    assert len(program.steps) == 2


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize("axes", [[0], [1, 2], [-1], [-3, 1], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_that_are_an_input(op_type: str, axes: list[int], keepdims: int) -> None:
    rank = 3 if keepdims else 3 - len(axes)
    model = graph(
        [helper.make_node(op_type, ["x", "a"], ["y"], keepdims=keepdims)],
        {"x": ("float32", ["N", 4, "M"]), "a": ("int64", [len(axes)])},
        {"y": ("float32", [f"out{axis}" for axis in range(rank)])},
    )
    hold(model, _CASES, {"a": np.array(axes)})


def test_an_axis_out_of_range_at_run_time() -> None:
    model = graph(
        [helper.make_node("ReduceSum", ["x", "a"], ["y"], name="total")],
        {"x": ("float32", ["N", 4]), "a": ("int64", [1])},
        {"y": ("float32", ["i", "j"])},
    )
    program = compile_graph(model)
    feeds = {"x": np.zeros((2, 4), np.float32), "a": np.array([2])}
    with pytest.raises(interpreter.RequirementError, match="total: an axis is out of range"):
        interpreter.run(program, feeds)


def test_a_constant_axis_that_the_input_does_not_have_is_refused() -> None:
    """One that only constant folding comes to know: ONNX's checker sees no fault."""
    model = graph(
        [
            helper.make_node("Add", ["one", "one"], ["axes"]),
            helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0),
        ],
        {"x": ("float32", ["N", "M"])},
        {"y": ("float32", ["N"])},
        {"one": np.array([1])},
    )
    with pytest.raises(ModelError, match="an axis is out of range for rank 2"):
        compile_graph(model)
