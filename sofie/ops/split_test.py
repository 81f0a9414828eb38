"""Split against the reference."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold


def _split(outputs: int, opset: int = 21, **attributes: Any) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(outputs)]
    return graph(
        [helper.make_node("Split", ["x"], names, name="cut", **attributes)],
        {"x": ("float32", [2, "N"])},
        dict.fromkeys(names, "float32"),
        opset=opset,
    )


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_the_last_part_is_smaller(parts: int) -> None:
    # The reference refuses extents for which several parts are empty.
    cases = [{"N": n} for n in (8, 7, 12, 0) if n == 0 or -(-n // parts) * (parts - 1) < n]
    hold(_split(parts, axis=1, num_outputs=parts), cases)


def test_equal_parts() -> None:
    hold(_split(2, opset=13, axis=-1), [{"N": 4}, {"N": 0}, {"N": 10}])
    message = "cut: the parts' sum and the axis must be equal, but are 4 and 5"
    program = compile_graph(_split(2, opset=13, axis=-1))
    with pytest.raises(interpreter.RequirementError, match=message):
        interpreter.run(program, {"x": np.ones((2, 5), np.float32)})


@pytest.mark.parametrize("opset", [7, 11])
def test_lengths_as_attribute(opset: int) -> None:
    model = graph(
        [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1, split=[2, 0, 3])],
        {"x": ("int64", ["N", 5])},
        {"a": "int64", "b": "int64", "c": "int64"},
        opset=opset,
    )
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])


def test_lengths_in_terms_of_sizes() -> None:
    model = graph(
        [
            helper.make_node("Concat", ["x", "z"], ["xz"], axis=0),
            helper.make_node("Shape", ["x"], ["a"], end=1),
            helper.make_node("Shape", ["z"], ["b"], end=1),
            helper.make_node("Concat", ["a", "b"], ["s"], axis=0),
            helper.make_node("Split", ["xz", "s"], ["u", "v"]),
            helper.make_node("Add", ["u", "x"], ["y"]),
            helper.make_node("Mul", ["v", "z"], ["w"]),
        ],
        {"x": ("float32", ["N", 2]), "z": ("float32", ["M", 2])},
        {"y": "float32", "w": "float32"},
    )
    hold(model, [{"N": 3, "M": 2}, {"N": 0, "M": 2}, {"N": 1, "M": 1}])


def test_a_part_that_nothing_reads() -> None:
    model = graph(
        [
            helper.make_node("Exp", ["x"], ["e"]),
            helper.make_node("Split", ["e"], ["a", "b"], axis=1, num_outputs=2),
            helper.make_node("Neg", ["b"], ["y"]),
        ],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
    )
    program = hold(model, [{"N": 3}, {"N": 0}])
    assert len(program.steps) == 1


def test_lengths_that_depend_on_data() -> None:
    model = graph(
        [helper.make_node("Split", ["x", "s"], ["a", "b"], axis=1)],
        {"x": ("float32", ["N", 5]), "s": ("int64", [2])},
        {"a": ("float32", ["N", "A"]), "b": ("float32", ["N", "B"])},
    )
    hold(model, [{"N": 3, "s": np.array(s)} for s in ([2, 3], [5, 0], [1, 4])])
