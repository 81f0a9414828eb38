"""Transpose against the reference."""

import itertools

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
def test_every_order(perm: tuple[int, ...]) -> None:
    model = graph(
        [helper.make_node("Transpose", ["x"], ["y"], perm=perm)],
        {"x": ("float32", ["N", 3, "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 5}, {"N": 1, "M": 1}, {"N": 0, "M": 4}])


def test_default_reverses() -> None:
    model = graph(
        [helper.make_node("Transpose", ["x"], ["y"])],
        {"x": ("int64", ["N", "M", 2, 3])},
        {"y": "int64"},
    )
    hold(model, [{"N": 2, "M": 5}, {"N": 1, "M": 1}, {"N": 3, "M": 2}])


def test_transposes_meet_in_one_kernel() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Relu", ["t"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", "M"])}, {"y": "float32"})
    program = hold(model, [{"N": 2, "M": 5}, {"N": 5, "M": 2}, {"N": 1, "M": 0}])
    assert len(program.steps) == 1
