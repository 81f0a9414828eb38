"""MaxPool against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold

_CASES = [{"N": 2, "M": 8}, {"N": 1, "M": 7}, {"N": 3, "M": 11}]


def _pool(shape: Dims, dtype: str = "float32", indices: bool = False, **attributes: Any) -> Any:
    outputs = {"y": dtype, **({"i": "int64"} if indices else {})}
    node = helper.make_node("MaxPool", ["x"], list(outputs), name="pool", **attributes)
    return graph([node], {"x": (dtype, shape)}, outputs)


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_geometry(kernel: int, stride: int, pads: list[int], ceil_mode: int) -> None:
    attributes: dict[str, Any] = {
        "kernel_shape": [kernel] * 2,
        "strides": [stride] * 2,
        "ceil_mode": ceil_mode,
    }
    model = _pool(["N", 2, "M", 6], pads=pads, **attributes)
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_auto_pad(auto_pad: str, kernel: int, stride: int) -> None:
    model = _pool(["N", 2, "M"], kernel_shape=[kernel], strides=[stride], auto_pad=auto_pad)
    hold(model, _CASES, against_runtime=True)


def test_dilated() -> None:
    hold(_pool(["N", 2, "M"], kernel_shape=[2], dilations=[3]), _CASES, against_runtime=True)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8"])
def test_types(dtype: str) -> None:
    model = _pool(["N", 2, "M"], dtype, kernel_shape=[3], pads=[1, 1])
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("shape", [["N", 2, "M"], ["N", 2, "M", 5], ["N", 2, "M", 5, 4]])
def test_indices(storage_order: int, shape: Dims) -> None:
    rank = len(shape) - 2
    model = _pool(
        shape,
        indices=True,
        kernel_shape=[3] * rank,
        strides=[2] * rank,
        pads=[1] * rank + [0] * rank,
        storage_order=storage_order,
    )
    hold(model, _CASES, against_runtime=True)


def test_indices_of_equal_elements_are_the_first_ones() -> None:
    model = _pool([1, 1, "M", 4], indices=True, kernel_shape=[2, 2], storage_order=1)
    x = np.tile(np.array([[1, 1, 0, 1]], np.float32), (1, 1, 4, 1))
    hold(model, [{"M": 4}], {"x": x}, against_runtime=True)


def test_after_something_else() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["y", "i"], kernel_shape=[2]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 2, "M"])}, {"y": "float32", "i": "int64"})
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"kernel_shape": [2], "pads": [2, 0]}, "pads as large as the window"),
        ({"kernel_shape": [2, 2]}, "kernel_shape of 2 numbers for 1 spatial axes"),
        ({"kernel_shape": [2], "strides": [0]}, "strides of 0"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], reason: str) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(_pool(["N", 2, "M"], kernel_shape=[2]))
    del model.graph.node[0].attribute[:]
    model.graph.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in attributes.items()
    )
    with pytest.raises(ModelError, match=reason + "|refuses the model"):
        compile_graph(model)
