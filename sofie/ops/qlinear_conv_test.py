"""ConvInteger and QLinearConv against the reference and ONNX Runtime: integers are exact."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 2}, {"N": 1}, {"N": 0}]


def _numbers(dtype: str, shape: list[int], seed: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        (["N", 2, 7, 6], [3, 2, 3, 3], {"pads": [1, 0, 1, 2]}),
        (["N", 4, 7, 6], [4, 2, 3, 2], {"group": 2, "strides": [2, 1]}),
        (["N", 3, 5, 5], [3, 1, 3, 3], {"group": 3, "auto_pad": "SAME_UPPER"}),
        (["N", 3, 5, 5], [4, 3, 1, 1], {}),
    ],
)
def test_sums_are_exact(
    x: Dims, w: list[int], attributes: dict[str, Any], constant: bool, zeros: bool
) -> None:
    names = ["x", "w", "xz", "wz"] if zeros else ["x", "w"]
    weights = _numbers("uint8", w, 1)
    constants = {"xz": np.array(7, np.uint8), "wz": np.array(9, np.uint8)} if zeros else {}
    inputs: dict[str, tuple[str, Dims]] = {"x": ("uint8", x)}
    if constant:
        constants["w"] = weights
    else:
        inputs["w"] = ("uint8", w)
    node = helper.make_node("ConvInteger", names, ["y"], **attributes)
    model = graph([node], inputs, {"y": "int32"}, constants)
    hold(model, _CASES[:2], {} if constant else {"w": weights})


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_results_are_quantized_again(kind: str, per_channel: bool, bias: bool) -> None:
    rng = np.random.default_rng(9)
    channels = [3] if per_channel else []
    constants = {
        "xs": np.array(0.02, np.float32),
        "xz": np.array(11, kind),
        "w": _numbers("int8", [3, 2, 3, 3], 2),
        "ws": rng.uniform(0.001, 0.01, channels).astype(np.float32),
        "wz": np.zeros(channels, np.int8),
        "ys": np.array(0.05, np.float32),
        "yz": np.array(30, kind),
    }
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    if bias:
        constants["b"] = rng.integers(-900, 900, 3).astype(np.int32)
        names.append("b")
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])
    model = graph([node], {"x": (kind, ["N", 2, 6, 5])}, {"y": kind}, constants)
    hold(model, _CASES[:2], {}, against_runtime=True)
