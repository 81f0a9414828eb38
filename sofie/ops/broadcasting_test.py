"""Sizes that only a run can show to be contradictory are refused by that run."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_two_symbols_broadcast_where_they_can() -> None:
    model = graph(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        {"a": ("float32", ["N", 3]), "b": ("float32", ["M", 3])},
        {"y": "float32"},
    )
    hold(
        model,
        [{"N": 4, "M": 4}, {"N": 1, "M": 5}, {"N": 6, "M": 1}, {"N": 0, "M": 1}, {"N": 1, "M": 0}],
    )
    for b in (4, 0):
        with pytest.raises(interpreter.RequirementError, match="does not broadcast"):
            interpreter.run(compile_graph(model), {"a": _ones(2, 3), "b": _ones(b, 3)})


def test_three_symbols_broadcast() -> None:
    model = graph(
        [
            helper.make_node("Add", ["a", "b"], ["s"]),
            helper.make_node("Mul", ["c", "s"], ["t"]),
            helper.make_node("Concat", ["t", "t"], ["y"], axis=0),
        ],
        {"a": ("float32", ["N", 3]), "b": ("float32", ["M", 3]), "c": ("float32", ["K", 1])},
        {"y": "float32"},
    )
    sizes = [(1, 4, 1), (5, 1, 5), (1, 1, 2), (1, 0, 1), (1, 1, 0)]
    hold(model, [{"N": n, "M": m, "K": k} for n, m, k in sizes])


def test_products_need_equal_extents() -> None:
    model = graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"], name="product")],
        {"a": ("float32", [2, "N"]), "b": ("float32", ["M", 3])},
        {"y": "float32"},
    )
    hold(model, [{"N": 4, "M": 4}, {"N": 1, "M": 1}])
    message = "product: columns and rows of the operands must be equal, but are 5 and 4"
    with pytest.raises(interpreter.RequirementError, match=message):
        interpreter.run(compile_graph(model), {"a": _ones(2, 5), "b": _ones(4, 3)})


def test_concatenation_needs_equal_extents() -> None:
    model = graph(
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=0, name="join")],
        {"a": ("float32", [2, "N"]), "b": ("float32", [3, "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 4, "M": 4}, {"N": 1, "M": 1}])
    with pytest.raises(interpreter.RequirementError, match="join: extents of axis 1 must be equal"):
        interpreter.run(compile_graph(model), {"a": _ones(2, 5), "b": _ones(3, 4)})
