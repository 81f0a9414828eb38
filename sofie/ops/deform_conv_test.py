"""DeformConv against the reference."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"group": 2},
        {"offset_group": 2},
        {"strides": [2, 1], "pads": [1, 0, 1, 1]},
        {"dilations": [2, 1]},
    ],
)
@pytest.mark.parametrize("mask", [False, True])
def test_geometry(attributes: dict[str, Any], mask: bool) -> None:
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0, 0, 0, 0])
    out = [
        (e + pads[a] + pads[2 + a] - dilations[a] - 1) // strides[a] + 1
        for a, e in ((0, 5), (1, 4))
    ]
    positions = 4 * attributes.get("offset_group", 1)
    rng = np.random.default_rng(2)
    inputs = {
        "x": ("float32", ["N", 4, 5, 4]),
        "o": ("float32", ["N", positions * 2, *out]),
        **({"m": ("float32", ["N", positions, *out])} if mask else {}),
    }
    names = ["x", "w", "o", "b", *(["m"] if mask else [])]
    model = graph(
        [helper.make_node("DeformConv", names, ["y"], **attributes)],
        inputs,
        {"y": "float32"},
        {
            "w": rng.standard_normal((2, 4 // attributes.get("group", 1), 2, 2)).astype(np.float32),
            "b": rng.standard_normal(2).astype(np.float32),
        },
    )
    hold(model, [{"N": 2}, {"N": 1}], tolerance=1e-4)
