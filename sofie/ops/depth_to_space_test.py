"""DepthToSpace and SpaceToDepth against the reference, and one after the other."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": 2, "H": 4}, {"N": 0, "H": 2}, {"N": 1, "H": 6}]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("channels", [8, "C"])
def test_depth_to_space(mode: str, channels: int | str) -> None:
    model = graph(
        [helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode=mode)],
        {"x": ("float32", ["N", channels, "H", 3])},
        {"y": "float32"},
    )
    hold(model, [{**case, "C": 12} for case in _CASES])


@pytest.mark.parametrize("opset", [7, 13])
def test_space_to_depth(opset: int) -> None:
    model = graph(
        [helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2)],
        {"x": ("float32", ["N", 3, "H", 4])},
        {"y": "float32"},
        opset=opset,
    )
    hold(model, _CASES)


def test_there_and_back() -> None:
    model = graph(
        [
            helper.make_node("SpaceToDepth", ["x"], ["d"], blocksize=2),
            helper.make_node("DepthToSpace", ["d"], ["y"], blocksize=2),
        ],
        {"x": ("int64", ["N", 3, "H", 4])},
        {"y": "int64"},
    )
    hold(model, _CASES)


def test_extents_must_be_multiples() -> None:
    model = graph(
        [helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2, name="fold")],
        {"x": ("float32", ["N", 3, "H", 4])},
        {"y": "float32"},
    )
    message = "fold: the extent of axis 2 and the largest multiple of blocksize must be equal"
    with pytest.raises(interpreter.RequirementError, match=message):
        interpreter.run(compile_graph(model), {"x": np.ones((1, 3, 5, 4), np.float32)})
