"""AveragePool and LpPool against ONNX Runtime, but for dilated averages, which it refuses."""

from typing import Any

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 2, "M": 8}, {"N": 1, "M": 7}, {"N": 3, "M": 11}]


def _hold(op_type: str, shape: Dims, opset: int = 21, **attributes: Any) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"], **attributes)],
        {"x": ("float32", shape)},
        {"y": "float32"},
        opset=opset,
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [2, 1, 1, 1]])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_what_is_counted(
    stride: int, pads: list[int], ceil_mode: int, count_include_pad: int
) -> None:
    _hold(
        "AveragePool",
        ["N", 2, "M", 6],
        kernel_shape=[3, 2],
        strides=[stride, stride],
        pads=pads,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_auto_pad(auto_pad: str, kernel: int, count_include_pad: int) -> None:
    attributes: dict[str, Any] = {"auto_pad": auto_pad, "count_include_pad": count_include_pad}
    _hold("AveragePool", ["N", 2, "M"], kernel_shape=[kernel], strides=[2], **attributes)


@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_dilations(count_include_pad: int) -> None:
    node = helper.make_node(
        "AveragePool",
        ["x"],
        ["y"],
        kernel_shape=[2, 3],
        dilations=[3, 2],
        pads=[1, 2, 2, 1],
        count_include_pad=count_include_pad,
    )
    hold(graph([node], {"x": ("float32", ["N", 2, "M", 7])}, {"y": "float32"}), _CASES)


def test_three_axes_and_an_old_opset() -> None:
    _hold("AveragePool", ["N", 2, "M", 4, 5], opset=7, kernel_shape=[2, 2, 2], strides=[1, 2, 1])


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("opset", [7, 18])
def test_p_norms(p: int, opset: int) -> None:
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "p": p}
    _hold("LpPool", ["N", 2, "M", 6], opset=opset, **attributes)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_p_norms_of_everything(p: int) -> None:
    _hold("GlobalLpPool", ["N", 2, "M", 6], p=p)
