"""TopK against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.ir.program import TopK
from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_axes(axis: int, largest: int, k: int) -> None:
    model = graph(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)],
        {"x": ("float32", ["N", 4, "M"])},
        {"v": "float32", "i": "int64"},
        {"k": np.array([k], np.int64)},
    )
    hold(model, [{"N": 3, "M": 5}, {"N": 4, "M": 3}, {"N": 7, "M": 9}])


def test_only_indices_are_computed_where_nothing_reads_the_values() -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"]),
        helper.make_node("Add", ["i", "one"], ["y"]),
    ]
    constants = {"k": np.array([2], np.int64), "one": np.array(1)}
    model = graph(nodes, {"x": ("float32", ["N", 6])}, {"y": "int64"}, constants)
    program = hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])
    (step,) = (step for step in program.steps if isinstance(step, TopK))
    assert step.values is None


def test_k_beyond_the_axis_is_refused() -> None:
    model = graph(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"], name="nearest")],
        {"x": ("float32", ["N"])},
        {"v": "float32", "i": "int64"},
        {"k": np.array([5], np.int64)},
    )
    program = compile_graph(model)
    with pytest.raises(interpreter.RequirementError, match=r"nearest: TopK takes K = 5 .* of 4"):
        interpreter.run(program, {"x": np.ones(4, np.float32)})
