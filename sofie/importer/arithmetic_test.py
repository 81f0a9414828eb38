"""What the host computes of small integer tensors, against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_BINARY = ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")
_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


@pytest.mark.parametrize("op_type", [*_BINARY, *_COMPARISONS])
def test_of_elements(op_type: str) -> None:
    """As the length of an output: the host computes it from an input, and reads nothing else."""
    nodes = [
        helper.make_node(op_type, ["a", "b"], ["r"]),
        helper.make_node("Cast", ["r"], ["i"], to=7),
        helper.make_node("Abs", ["i"], ["n"]),
        helper.make_node("ConstantOfShape", ["n"], ["y"]),
    ]
    model = graph(nodes, {"a": ("int64", [2]), "b": ("int64", [2])}, {"y": "float32"})
    pairs = [((7, 3), (2, 3)), ((-7, 7), (2, -2)), ((-8, 0), (3, 5)), ((1, -9), (1, 4))]
    program = hold(model, [{"a": np.array(a), "b": np.array(b)} for a, b in pairs])
    assert len(program.reads) == 2 and len(program.segments()) == 1


def test_of_sizes() -> None:
    """Half of the rows, as exporters say it: nothing is read."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["rows"]),
        helper.make_node("Div", ["rows", "two"], ["half"]),
        helper.make_node("Greater", ["half", "two"], ["many"]),
        helper.make_node("Where", ["many", "half", "rows"], ["stop"]),
        helper.make_node("Slice", ["x", "first", "stop", "first"], ["y"]),
    ]
    constants = {"first": np.array([0], np.int64), "two": np.array([2], np.int64)}
    model = graph(nodes, {"x": ("float32", ["N", 3])}, {"y": "float32"}, constants)
    program = hold(model, [{"N": n} for n in (9, 6, 4, 1, 0)])
    assert not program.reads and len(program.segments()) == 1
