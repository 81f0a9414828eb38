"""Cast against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_TYPES = ["float16", "bfloat16", "float32", "float64", "int32", "int64", "bool"]


@pytest.mark.parametrize("target", _TYPES)
@pytest.mark.parametrize("source", _TYPES)
def test_every_pair(source: str, target: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    model = graph(
        [helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": (source, ["N", 3])}, {"y": target}
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


_SMALL = [
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"),
    *("int4", "uint4", "int2", "uint2"),
]


@pytest.mark.parametrize("small", _SMALL)
@pytest.mark.parametrize("wide", ["float16", "bfloat16", "float32", "float64", "int8", "uint8"])
def test_small_types_both_ways(small: str, wide: str) -> None:
    to, back = (helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (small, wide))
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=to),
        helper.make_node("Cast", ["s"], ["y"], to=back),
    ]
    model = graph(nodes, {"x": (wide, ["N", 3])}, {"s": small, "y": wide}, opset=25)
    hold(model, [{"N": 5}, {"N": 0}, {"N": 1}])


@pytest.mark.parametrize("small", _SMALL[:5])
@pytest.mark.parametrize("saturate", [0, 1])
def test_what_is_too_large_saturates_or_does_not(small: str, saturate: int) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(small))
    node = helper.make_node("Cast", ["x"], ["y"], to=to, saturate=saturate)
    x = np.array([1e9, -1e9, np.inf, -np.inf, 0.3, -0.0], np.float32)
    model = graph([node], {"x": ("float32", [6])}, {"y": small}, opset=25)
    hold(model, [{}], {"x": x})


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_scales_are_powers_of_two(mode: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype("float8_e8m0fnu"))
    node = helper.make_node("Cast", ["x"], ["y"], to=to, round_mode=mode)
    x = np.array([1, 1.5, 3, 5, 6, 1e-40, 3e38, np.inf, np.nan], np.float32)
    model = graph([node], {"x": ("float32", [9])}, {"y": "float8_e8m0fnu"}, opset=25)
    hold(model, [{}], {"x": x})


def test_a_double_is_rounded_once() -> None:
    # In float32 it would be half way between two of float16, and go to the even one.
    x = np.array([1 + 2**-11 + 2**-40], np.float64)
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype("e")))
    hold(graph([node], {"x": ("float64", [1])}, {"y": "float16"}), [{}], {"x": x}, tolerance=0)
