"""ConvTranspose against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 2, "M": 4}, {"N": 1, "M": 1}, {"N": 3, "M": 6}]


def _hold(shape: Dims, weights: tuple[int, ...], bias: bool = True, **attributes: Any) -> None:
    rng = np.random.default_rng(5)
    constants = {"w": rng.standard_normal(weights).astype(np.float32)}
    if bias:
        outputs = weights[1] * attributes.get("group", 1)
        constants["b"] = rng.standard_normal(outputs).astype(np.float32)
    model = graph(
        [helper.make_node("ConvTranspose", ["x", *constants], ["y"], **attributes)],
        {"x": ("float32", shape)},
        {"y": "float32"},
        constants,
    )
    hold(model, _CASES, tolerance=1e-4, against_runtime=True)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_no_attributes(spatial: int, bias: bool) -> None:
    extents: list[int | str] = ["M", 3, 2]
    _hold(["N", 3, *extents[:spatial]], (3, 4, *[2] * spatial), bias)


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("channels", [1, 3])
def test_groups_of_several_channels(group: int, channels: int) -> None:
    _hold(["N", 4, "M", 3], (4, channels, 3, 2), group=group, strides=[2, 1], pads=[1, 0, 0, 1])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]])
def test_geometry(stride: int, dilation: int, pads: list[int]) -> None:
    _hold(
        ["N", 2, "M", 3],
        (2, 3, 3, 2),
        strides=[stride, 2],
        dilations=[dilation, 1],
        pads=pads,
        output_padding=[stride - 1, 1],
    )


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_auto_pad(auto_pad: str, kernel: int, stride: int) -> None:
    if auto_pad != "VALID" and kernel < stride:
        pytest.skip("ONNX Runtime refuses windows that leave gaps")
    _hold(["N", 2, "M"], (2, 3, kernel), auto_pad=auto_pad, strides=[stride])


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER"])
@pytest.mark.parametrize("wanted", [[9, 8], [10, 7]])
def test_output_shape(auto_pad: str, wanted: list[int]) -> None:
    rng = np.random.default_rng(5)
    attributes: dict[str, Any] = {"output_shape": wanted, "strides": [3, 2], "auto_pad": auto_pad}
    model = graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)],
        {"x": ("float32", ["N", 2, 3, 4])},
        {"y": "float32"},
        {"w": rng.standard_normal((2, 3, 4, 3)).astype(np.float32)},
    )
    hold(model, [{"N": 2}, {"N": 1}], tolerance=1e-4, against_runtime=True)


def test_weights_that_are_an_input() -> None:
    model = graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2])],
        {"x": ("float32", ["N", "C", "M"]), "w": ("float32", ["C", "K", 3])},
        {"y": "float32"},
    )
    hold(
        model, [{"N": 2, "C": 3, "M": 4, "K": 2}, {"N": 1, "C": 1, "M": 5, "K": 1}], tolerance=1e-4
    )
