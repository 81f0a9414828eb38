"""MaxUnpool against the reference, and against the pooling that it undoes."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [0, 0, 1, 1]])
def test_after_a_pooling(pads: list[int]) -> None:
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    model = graph(
        [
            helper.make_node("MaxPool", ["x"], ["p", "i"], **window),
            helper.make_node("MaxUnpool", ["p", "i"], ["y"], **window),
        ],
        {"x": ("float32", ["N", 2, "M", 6])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 4}, {"N": 1, "M": 8}, {"N": 0, "M": 2}][: 3 - 2 * any(pads)])


def test_a_larger_output() -> None:
    model = graph(
        [
            helper.make_node("MaxUnpool", ["x", "i", "s"], ["z"], kernel_shape=[2], strides=[2]),
            helper.make_node("Reshape", ["z", "s"], ["y"]),
        ],
        {"x": ("float32", [1, 1, "M"]), "i": ("int64", [1, 1, "M"])},
        {"y": "float32"},
        {"s": np.array([1, 1, 7], np.int64)},
    )
    hold(model, [{"M": 3}], {"i": np.array([[[1, 2, 5]]])})
    inputs: dict[str, Array] = {
        "x": np.ones((1, 1, 4), np.float32),
        "i": np.zeros((1, 1, 4), np.int64),
    }
    with pytest.raises(interpreter.RequirementError, match="output_shape has 7 elements of 8"):
        interpreter.run(compile_graph(model), inputs)
