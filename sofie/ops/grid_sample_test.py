"""GridSample against the reference (which takes coordinates that are not numbers badly)."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_GRID = np.random.default_rng(3).uniform(-1.6, 1.6, (2, 3, 4, 2)).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_modes(mode: str, padding: str, aligned: int) -> None:
    model = graph(
        [
            helper.make_node(
                "GridSample",
                ["x", "g"],
                ["y"],
                mode=mode,
                padding_mode=padding,
                align_corners=aligned,
            )
        ],
        {"x": ("float32", ["N", 2, "H", 3]), "g": ("float32", ["N", "A", "B", 2])},
        {"y": "float32"},
    )
    for n, h in ((2, 4), (1, 2)):
        hold(model, [{"N": n, "H": h, "A": 3, "B": 4}], {"g": _GRID[:n]}, tolerance=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_three_axes(mode: str) -> None:
    model = graph(
        [helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode)],
        {"x": ("float32", [1, 2, "D", 3, 2]), "g": ("float32", [1, 2, "A", 3, 3])},
        {"y": "float32"},
    )
    grid = np.random.default_rng(3).uniform(-1.2, 1.2, (1, 2, 4, 3, 3)).astype(np.float32)
    hold(model, [{"D": 4, "A": 4}], {"g": grid}, tolerance=1e-4)


def test_the_older_names() -> None:
    model = graph(
        [helper.make_node("GridSample", ["x", "g"], ["y"], mode="bilinear")],
        {"x": ("float32", ["N", 2, 4, 3]), "g": ("float32", ["N", 3, 4, 2])},
        {"y": "float32"},
        opset=16,
    )
    hold(model, [{"N": 2}], {"g": _GRID}, tolerance=1e-4, against_runtime=True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_coordinates_that_are_no_numbers_read_nothing_outside(padding: str) -> None:
    model = graph(
        [helper.make_node("GridSample", ["x", "g"], ["y"], padding_mode=padding)],
        {"x": ("float32", [1, 1, 4, 3]), "g": ("float32", [1, 1, "A", 2])},
        {"y": "float32"},
    )
    grid = np.array([[[[np.nan, 0], [np.inf, 0], [0, -np.inf], [1e30, -1e30]]]], np.float32)
    interpreter.run(compile_graph(model), {"x": np.ones((1, 1, 4, 3), np.float32), "g": grid})
