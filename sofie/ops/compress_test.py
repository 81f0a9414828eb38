"""Compress against the reference."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_at_several_sizes(axis: int | None) -> None:
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    model = graph(
        [helper.make_node("Compress", ["x", "c"], ["y"], **attributes)],
        {"x": ("float32", ["N", 4]), "c": ("bool", ["C"])},
        {"y": "float32"},
    )
    patterns = [[1, 0, 1, 1], [0, 0, 0, 0], [1], [1, 1, 1, 1], []]
    hold(model, [{"N": 4, "c": np.array(p, bool)} for p in patterns])


def test_more_conditions_than_slices() -> None:
    model = graph(
        [helper.make_node("Compress", ["x", "c"], ["y"], axis=0)],
        {"x": ("float32", ["N"]), "c": ("bool", ["C"])},
        {"y": "float32"},
    )
    feeds = {"x": np.ones(2, np.float32), "c": np.ones(3, bool)}
    with pytest.raises(interpreter.RequirementError, match="3 conditions for an axis of 2"):
        interpreter.run(compile_graph(model), feeds)
