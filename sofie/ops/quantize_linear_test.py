"""QuantizeLinear and DequantizeLinear against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.testing.operators import graph, hold, import_model

_INTEGERS = ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"]
_FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]
_CASES = [{"N": 5}, {"N": 0}, {"N": 1}]


@pytest.mark.parametrize("target", _INTEGERS + _FLOATS)
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
def test_one_scale(source: str, target: str) -> None:
    constants = {
        "s": np.array(0.25, source),
        "z": np.array(1 if target in _INTEGERS else 0, target),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    # Halves of a step among them, which go to the even neighbour.
    x = (np.arange(-40, 40) / 16).reshape(20, 4).astype(source)
    model = graph(nodes, {"x": (source, ["N", 4])}, {"q": target, "y": source}, constants, opset=25)
    hold(model, [{"N": 20}], {"x": x})
    hold(model, _CASES)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("target", ["int8", "uint4"])
def test_a_scale_for_each_index_of_an_axis(target: str, axis: int) -> None:
    rng = np.random.default_rng(5)
    extent = (3, 4, 2)[axis]
    constants: dict[str, np.ndarray] = {
        "s": rng.uniform(0.1, 0.5, extent).astype(np.float32),
        "z": rng.integers(0, 3, extent).astype(target),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis),
    ]
    model = graph(
        nodes, {"x": ("float32", [3, 4, 2])}, {"q": target, "y": "float32"}, constants, opset=25
    )
    hold(model, [{}])


@pytest.mark.parametrize("extent", [6, 7])
def test_a_scale_for_each_block(extent: int) -> None:
    rng = np.random.default_rng(7)
    blocks = -(-extent // 3)
    constants: dict[str, np.ndarray] = {
        "s": rng.uniform(0.1, 0.5, (2, blocks)).astype(np.float32),
        "z": rng.integers(-3, 3, (2, blocks)).astype(np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=3),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=3),
    ]
    model = graph(
        nodes, {"x": ("float32", [2, extent])}, {"q": "int8", "y": "float32"}, constants, opset=25
    )
    hold(model, [{}])


@pytest.mark.parametrize("target", _FLOATS)
@pytest.mark.parametrize("saturate", [0, 1])
def test_what_is_too_large_saturates_or_does_not(target: str, saturate: int) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=to, saturate=saturate)
    constants = {"s": np.array(1, np.float32)}
    x = np.array([1e6, -1e6, 3.3, 0.01, -0.0], np.float32)
    model = graph([node], {"x": ("float32", [5])}, {"q": target}, constants, opset=25)
    hold(model, [{}], {"x": x})


def test_without_a_zero_point_the_result_is_uint8() -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["q"])
    hold(graph([node], {"x": ("float32", ["N"]), "s": ("float32", [])}, {"q": "uint8"}), _CASES)


def test_int32_is_dequantized_exactly() -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"])
    x = np.array([2**24 + 2, -(2**31), 2**31 - 1, 7], np.int32)
    model = graph([node], {"x": ("int32", [4]), "s": ("float32", [])}, {"y": "float32"})
    hold(model, [{}], {"x": x})


def test_scales_of_another_shape_are_refused() -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], name="node")
    model = graph(
        [node], {"x": ("int8", [2, 3]), "s": ("float32", [2, 3])}, {"y": "float32"}, opset=21
    )
    with pytest.raises(ModelError, match="a scale of rank 2 that is not one of blocks"):
        check(import_model(model))


@pytest.mark.parametrize("scales", [1, 4])
def test_scales_of_any_number(scales: int) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "x": ("float32", ["N", 4]),
        "s": ("float32", ["S"]),
        "z": ("int8", ["S"]),
    }
    model = graph(nodes, inputs, {"q": "int8", "y": "float32"})
    given: dict[str, np.ndarray] = {
        "s": np.linspace(0.1, 0.5, scales, dtype=np.float32),
        "z": np.ones(scales, np.int8),
    }
    hold(model, [case | {"S": scales} for case in _CASES], given)
