"""Concat against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("axis", [1, -1])
def test_symbolic_extents_along_the_axis(axis: int) -> None:
    model = graph(
        [helper.make_node("Concat", ["a", "b", "c"], ["y"], axis=axis)],
        {"a": ("float32", [2, "N"]), "b": ("float32", [2, 3]), "c": ("float32", [2, "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 3}, {"N": 0, "M": 1}, {"N": 4, "M": 0}])


def test_of_computed_values_is_one_kernel() -> None:
    nodes = [
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Neg", ["b"], ["n"]),
        helper.make_node("Concat", ["r", "n"], ["y"], axis=0),
    ]
    model = graph(nodes, {"a": ("float32", ["N", 3]), "b": ("float32", ["M", 3])}, {"y": "float32"})
    program = hold(model, [{"N": 2, "M": 3}, {"N": 0, "M": 1}, {"N": 4, "M": 0}])
    assert len(program.steps) == 1
