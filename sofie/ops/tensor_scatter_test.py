"""TensorScatter against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1, -1])
def test_modes_and_axes(mode: str, axis: int) -> None:
    shape: list[int | str] = ["B", 6, 6, 6]
    update = list(shape)
    update[axis] = 2
    model = graph(
        [helper.make_node("TensorScatter", ["c", "u", "w"], ["y"], mode=mode, axis=axis)],
        {"c": ("float32", shape), "u": ("float32", update), "w": ("int64", ["B"])},
        {"y": "float32"},
        opset=24,
    )
    top = 5 if mode == "circular" else 4
    for starts in ([0], [top, 1], [], [2, 2, top]):
        hold(model, [{"B": len(starts)}], {"w": np.array(starts, np.int64)})


def test_without_write_indices() -> None:
    model = graph(
        [helper.make_node("TensorScatter", ["c", "u"], ["y"])],
        {"c": ("float32", ["B", "S", 4]), "u": ("float32", ["B", "L", 4])},
        {"y": "float32"},
        opset=24,
    )
    hold(model, [{"B": 2, "S": 6, "L": 2}, {"B": 1, "S": 3, "L": 3}, {"B": 0, "S": 3, "L": 1}])
