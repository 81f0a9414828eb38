"""GatherElements against ONNX Runtime: the reference takes indices of the input's extents only."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_axes_and_negative_indices(axis: int, kind: str) -> None:
    model = graph(
        [helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)],
        {"x": ("float32", [3, 4]), "i": (kind, ["N", 3])},
        {"y": "float32"},
    )
    for n in (2, 0, 1, 3):
        indices = np.arange(n * 3).reshape(n, 3) % 6 - 3
        hold(model, [{"N": n}], {"i": indices.astype(kind)}, against_runtime=True)


def test_indices_must_not_exceed_the_other_axes() -> None:
    model = graph(
        [helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1, name="pick")],
        {"x": ("float32", ["N", 4]), "i": ("int64", ["M", 3])},
        {"y": "float32"},
    )
    inputs: dict[str, Array] = {"x": np.ones((2, 4), np.float32), "i": np.zeros((3, 3), np.int64)}
    message = "pick: indices have 3 elements along axis 0 of 2"
    with pytest.raises(interpreter.RequirementError, match=message):
        interpreter.run(compile_graph(model), inputs)
