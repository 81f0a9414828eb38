"""Conv against the reference."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Dims, compile_graph, graph, hold

_CASES = [{"N": 2, "M": 8}, {"N": 1, "M": 7}, {"N": 3, "M": 11}]


def _spatial(rank: int) -> list[int | str]:
    extents: list[int | str] = ["M", 5, 4]
    return extents[:rank]


def _conv(
    shape: Dims,
    weights: tuple[int, ...],
    bias: bool = True,
    relu: bool = False,
    **attributes: Any,
) -> None:
    rng = np.random.default_rng(5)
    constants = {"w": rng.standard_normal(weights).astype(np.float32)}
    if bias:
        constants["b"] = rng.standard_normal(weights[0]).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", *constants], ["c"], **attributes)]
    nodes.append(helper.make_node("Relu" if relu else "Identity", ["c"], ["y"]))
    model = graph(nodes, {"x": ("float32", shape)}, {"y": "float32"}, constants)
    hold(model, _CASES, tolerance=1e-4)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_one_tap(spatial: int, bias: bool, relu: bool) -> None:
    _conv(["N", 4, *_spatial(spatial)], (5, 4, *[1] * spatial), bias, relu)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_no_attributes(spatial: int) -> None:
    _conv(["N", 2, *_spatial(spatial)], (3, 2, *[3] * spatial))


@pytest.mark.parametrize("spatial", [1, 2])
@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("relu", [False, True])
def test_groups(spatial: int, group: int, relu: bool) -> None:
    shape: Dims = ["N", 4, *_spatial(spatial)]
    _conv(shape, (8, 4 // group, *[3] * spatial), relu=relu, group=group, pads=[1] * (2 * spatial))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 2, 1], [2, 2, 2, 2]])
def test_geometry(stride: int, dilation: int, pads: list[int]) -> None:
    _conv(
        ["N", 2, "M", 9],
        (3, 2, 3, 2),
        strides=[stride, 1],
        dilations=[dilation, dilation],
        pads=pads,
    )


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("stride", [1, 2])
def test_auto_pad(auto_pad: str, kernel: int, stride: int) -> None:
    _conv(["N", 2, "M"], (3, 2, kernel), auto_pad=auto_pad, strides=[stride])


def test_a_relu_does_not_swallow_a_value_that_is_also_an_output() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    weights = np.random.default_rng(3).standard_normal((3, 2, 1)).astype(np.float32)
    model = graph(
        nodes, {"x": ("float32", ["N", 2, "M"])}, {"c": "float32", "y": "float32"}, {"w": weights}
    )
    hold(model, _CASES)


def test_weights_that_are_an_input() -> None:
    model = graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1])],
        {"x": ("float32", ["N", 2, "M"]), "w": ("float32", [3, 2, 3])},
        {"y": "float32"},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("group", [1, 2])
def test_weights_of_any_extents(group: int) -> None:
    model = graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=group)],
        {"x": ("float32", ["N", "C", "M"]), "w": ("float32", ["O", "I", "K"])},
        {"y": ("float32", ["N", "O", "L"])},
    )
    sizes = [(2, 4, 2), (1, 2, 5), (3, 6, 1)]
    cases = [{"N": n, "I": 2, "C": 2 * group, "M": 8, "O": o, "K": k} for n, o, k in sizes]
    hold(model, cases)


@pytest.mark.parametrize("pads", [[0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 2]])
def test_one_tap_with_padding(pads: list[int]) -> None:
    _conv(["N", 4, "M", 5], (5, 4, 1, 1), pads=pads)


def test_inputs_smaller_than_the_window_are_refused() -> None:
    weights = np.ones((3, 2, 3, 3), np.float32)
    model = graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        {"x": ("float32", [1, 2, "N", "M"])},
        {"y": "float32"},
        {"w": weights},
    )
    program = compile_graph(model)
    with pytest.raises(interpreter.RequirementError, match="smaller than the window along axis 2"):
        interpreter.run(program, {"x": np.ones((1, 2, 1, 1), np.float32)})
