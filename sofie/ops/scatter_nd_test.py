"""ScatterND against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_reductions_and_depths(reduction: str, depth: int) -> None:
    shape: Dims = [4, 3, "N"]
    model = graph(
        [helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)],
        {
            "x": ("float32", shape),
            "i": ("int64", ["K", 2, depth]),
            "u": ("float32", ["K", 2, *shape[depth:]]),
        },
        {"y": "float32"},
    )
    for k, n in ((2, 3), (0, 2), (1, 2)):
        if reduction == "none":
            # No element may be updated twice.
            indices = np.zeros((k, 2, depth), np.int64)
            indices[..., 0] = np.arange(k * 2).reshape(k, 2) - 2
        else:
            indices = np.arange(k * 2 * depth).reshape(k, 2, depth) % 2 - (depth < 3)
        hold(model, [{"K": k, "N": n}], {"i": indices})


def test_a_whole_tensor_at_once() -> None:
    model = graph(
        [helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")],
        {"x": ("int64", ["N"]), "i": ("int64", [1]), "u": ("int64", [])},
        {"y": "int64"},
    )
    hold(model, [{"N": 3}, {"N": 1}], {"i": np.array([-1])})
