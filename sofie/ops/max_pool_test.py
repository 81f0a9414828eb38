"""MaxPool against the reference."""

import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": 2, "M": 8}, {"N": 1, "M": 7}, {"N": 3, "M": 11}]


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]])
def test_geometry(kernel: int, stride: int, pads: list[int]) -> None:
    model = graph(
        [
            helper.make_node(
                "MaxPool",
                ["x"],
                ["y"],
                kernel_shape=[kernel, kernel],
                strides=[stride, stride],
                pads=pads,
            )
        ],
        {"x": ("float32", ["N", 2, "M", 6])},
        {"y": "float32"},
    )
    hold(model, _CASES)


def test_dilated() -> None:
    model = graph(
        [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], dilations=[3])],
        {"x": ("float32", ["N", 2, "M"])},
        {"y": "float32"},
    )
    hold(model, _CASES)


def test_indices_are_refused() -> None:
    model = graph(
        [helper.make_node("MaxPool", ["x"], ["y", "i"], name="pool", kernel_shape=[2])],
        {"x": ("float32", ["N", 2, "M"])},
        {"y": "float32", "i": "int64"},
    )
    with pytest.raises(ModelError, match=r"pool \(MaxPool\): the optional output Indices"):
        compile_graph(model)
