"""Operators of com.microsoft against ONNX Runtime, which defines them."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold

_DOMAIN = "com.microsoft"
_CASES = [{"N": 3, "S": 5}, {"N": 1, "S": 1}, {"N": 2, "S": 8}]


def _model(
    op_type: str,
    inputs: dict[str, tuple[str, Dims]],
    outputs: dict[str, tuple[str, Dims]],
    names: list[str] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    node = helper.make_node(
        op_type, list(inputs), names or list(outputs), domain=_DOMAIN, **attributes
    )
    given = {name: kind for name, kind in inputs.items() if name}
    return graph([node], given, dict(outputs), domains={_DOMAIN: 1}, opset=17)


@pytest.mark.parametrize("op_type", ["Gelu", "QuickGelu", "FastGelu"])
def test_gelu(op_type: str) -> None:
    shape: Dims = ["N", "S"]
    model = _model(op_type, {"x": ("float32", shape)}, {"y": ("float32", shape)})
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize("op_type", ["BiasGelu", "FastGelu"])
def test_gelu_with_bias(op_type: str) -> None:
    shape: Dims = ["N", "S"]
    model = _model(
        op_type, {"x": ("float32", shape), "b": ("float32", ["S"])}, {"y": ("float32", shape)}
    )
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("alpha", [1.0, 0.125])
def test_fused_matmul(transposed: tuple[int, int], alpha: float) -> None:
    left: Dims = ["N", 3, "S"]
    right: Dims = ["S", 4]
    model = _model(
        "FusedMatMul",
        {
            "a": ("float32", ["N", "S", 3] if transposed[0] else left),
            "b": ("float32", [4, "S"] if transposed[1] else right),
        },
        {"y": ("float32", ["N", 3, 4])},
        transA=transposed[0],
        transB=transposed[1],
        alpha=alpha,
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("optional", [[], ["beta"], ["beta", "bias"]])
@pytest.mark.parametrize("with_sum", [False, True])
def test_skip_layer_normalization(optional: list[str], with_sum: bool) -> None:
    shape: Dims = ["N", "S", 8]
    vectors = {name: ("float32", [8]) for name in ["gamma", *optional]}
    outputs = {"y": ("float32", shape), **({"sum": ("float32", shape)} if with_sum else {})}
    model = _model(
        "SkipLayerNormalization",
        {"x": ("float32", shape), "skip": ("float32", shape), **vectors},
        outputs,
        ["y", "", "", "sum"] if with_sum else ["y"],
    )
    program = hold(model, _CASES, against_runtime=True, tolerance=1e-4)
    assert len(program.steps) == 1 + with_sum


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias: bool) -> None:
    shape: Dims = ["N", "S", 8]
    vectors = {name: ("float32", [8]) for name in ["gamma", *(["bias"] if bias else [])]}
    model = _model(
        "SkipSimplifiedLayerNormalization",
        {"x": ("float32", shape), "skip": ("float32", shape), **vectors},
        {"y": ("float32", shape)},
    )
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_embed_layer_normalization(segments: bool, mask: bool) -> None:
    inputs: dict[str, tuple[str, Dims]] = {
        "ids": ("int32", ["N", "S"]),
        "segments" if segments else "": ("int32", ["N", "S"]),
        "words": ("float32", [10, 8]),
        "places": ("float32", [12, 8]),
        "kinds" if segments else " ": ("float32", [10, 8]),
        "gamma": ("float32", [8]),
        "beta": ("float32", [8]),
    }
    names = [name.strip() for name in inputs]
    if mask:
        inputs["mask"] = ("int32", ["N", "S"])
        names.append("mask")
    node = helper.make_node("EmbedLayerNormalization", names, ["y", "lengths"], domain=_DOMAIN)
    model = graph(
        [node],
        {name: kind for name, kind in inputs.items() if name.strip()},
        {"y": ("float32", ["N", "S", 8]), "lengths": ("int32", ["N"])},
        domains={_DOMAIN: 1},
        opset=17,
    )
    hold(model, _CASES, values=np.abs, against_runtime=True, tolerance=1e-4)


_ACTIVATIONS: list[tuple[str, list[float]]] = [
    ("Relu", []),
    ("Tanh", []),
    ("Sigmoid", []),
    ("LeakyRelu", [0.125]),
    ("Clip", [-0.5, 1.0]),
    ("HardSigmoid", [0.25, 0.5]),
]


@pytest.mark.parametrize(("activation", "parameters"), _ACTIVATIONS)
@pytest.mark.parametrize("groups", [1, 2])
def test_fused_conv(activation: str, parameters: list[float], groups: int) -> None:
    options: dict[str, Any] = {"activation_params": parameters} if parameters else {}
    model = _model(
        "FusedConv",
        {
            "x": ("float32", ["N", 4, "S", 6]),
            "w": ("float32", [2, 4 // groups, 3, 3]),
            "b": ("float32", [2]),
        },
        {"y": ("float32", ["N", 2, "S", 6])},
        activation=activation,
        group=groups,
        pads=[1, 1, 1, 1],
        **options,
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", [1, 3])
def test_fused_conv_with_a_tensor_added(kernel: int, bias: bool) -> None:
    shape: Dims = ["N", 2, "S", 6]
    inputs: dict[str, tuple[str, Dims]] = {
        "x": ("float32", ["N", 4, "S", 6]),
        "w": ("float32", [2, 4, kernel, kernel]),
        "b" if bias else "": ("float32", [2]),
        "z": ("float32", shape),
    }
    model = _model(
        "FusedConv",
        inputs,
        {"y": ("float32", shape)},
        activation="Relu",
        pads=[kernel // 2] * 4,
    )
    hold(model, _CASES, against_runtime=True)


def test_fused_conv_without_an_activation_of_its_own() -> None:
    model = _model(
        "FusedConv",
        {"x": ("float32", ["N", 4, "S"]), "w": ("float32", [2, 4, 1])},
        {"y": ("float32", ["N", 2, "S"])},
        activation="Relu6",
    )
    with pytest.raises(ModelError, match="the activation 'Relu6'"):
        compile_graph(model)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [None, -1, 2])
def test_trilu(upper: int, diagonal: int | None) -> None:
    shape: Dims = ["N", "S", 4]
    names = ["x", *([] if diagonal is None else ["k"])]
    node = helper.make_node("Trilu", names, ["y"], domain=_DOMAIN, upper=upper)
    model = graph(
        [node],
        {"x": ("float32", shape)},
        {"y": ("float32", shape)},
        {} if diagonal is None else {"k": np.array(diagonal)},
        domains={_DOMAIN: 1},
        opset=17,
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize(
    ("mode", "padding"),
    [
        ("bilinear", "zeros"),
        ("bilinear", "border"),
        ("bilinear", "reflection"),
        ("nearest", "border"),
        ("bicubic", "zeros"),
        ("bicubic", "reflection"),
    ],
)
def test_grid_sample(mode: str, padding: str) -> None:
    model = _model(
        "GridSample",
        {"x": ("float32", ["N", 2, 5, "S"]), "g": ("float32", ["N", 3, "S", 2])},
        {"y": ("float32", ["N", 2, 3, "S"])},
        mode=mode,
        padding_mode=padding,
    )
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


def test_grid_sample_where_runtime_and_definition_differ() -> None:
    model = _model(
        "GridSample",
        {"x": ("float32", ["N", 2, 5, "S"]), "g": ("float32", ["N", 3, "S", 2])},
        {"y": ("float32", ["N", 2, 3, "S"])},
        mode="bicubic",
        padding_mode="border",
    )
    with pytest.raises(ModelError, match="bicubic samples of a border"):
        compile_graph(model)


@pytest.mark.parametrize("shape", [["S", "S"], ["N", "S", "S"], [2, "N", 3, 3]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_inverse(shape: Dims, dtype: str) -> None:
    model = _model("Inverse", {"x": (dtype, shape)}, {"y": (dtype, shape)})
    hold(
        model,
        [{"N": 3, "S": 5}, {"N": 1, "S": 1}, {"N": 2, "S": 3}],
        against_runtime=True,
        tolerance=1e-3,
    )


def test_inverse_exchanges_rows() -> None:
    model = _model("Inverse", {"x": ("float32", ["N", 3, 3])}, {"y": ("float32", ["N", 3, 3])})
    x = np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 0, 2], [0, 3, 1], [4, 1, 1]]], np.float32)
    hold(model, [{"x": x}], reference=lambda inputs: [np.linalg.inv(inputs["x"])])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantize_and_dequantize(dtype: str, axis: int | None) -> None:
    count: Dims = [] if axis is None else [4]
    shape: Dims = ["N", 4] if axis == 1 else [4, "S"]
    options: dict[str, Any] = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=_DOMAIN, **options),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain=_DOMAIN, **options),
    ]
    model = graph(
        nodes,
        {"x": ("float32", shape)},
        {"q": (dtype, shape), "y": ("float32", shape)},
        {
            "s": np.full(count, 0.0625, np.float32),
            "z": np.full(count, 3, dtype),
        },
        domains={_DOMAIN: 1},
        opset=17,
    )
    hold(model, _CASES, against_runtime=True)
