"""Writes the small ONNX models that hold the element types on every backend.

    dtype_models float16 output.onnx

Each model takes inputs of one family of element types through operators of every kind of kernel.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by name from here on.
import numpy as np
import onnx
from onnx import helper, numpy_helper

_OPSET = 22
_Types = Mapping[str, tuple[str, Sequence[int | str] | None]]


def _onnx_type(name: str) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(name))


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: _Types,
    outputs: _Types,
    constants: Mapping[str, np.ndarray[Any, Any]],
    opset: int = _OPSET,
) -> onnx.ModelProto:
    """A checked model; inputs and outputs are type and shape by name."""

    def values(types: _Types) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, _onnx_type(dtype), shape)
            for name, (dtype, shape) in types.items()
        ]

    graph = helper.make_graph(
        nodes,
        "dtypes",
        values(inputs),
        values(outputs),
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=10)
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def floats(dtype: str) -> onnx.ModelProto:
    """Chains, reductions, softmax, products, convolution, selection and casts of one type."""
    rng = np.random.default_rng(11)
    node = helper.make_node
    constants = {
        "w": rng.standard_normal((8, 6)).astype(dtype),
        "b": rng.standard_normal(6).astype(dtype),
        "kernel": rng.standard_normal((3, 2, 3)).astype(dtype),
        "images": np.array([-1, 2, 4]),
        "last": np.array([-1]),
        "half": np.array(0.5, dtype),
    }
    nodes = [
        node("Add", ["x", "y"], ["added"]),
        node("Mul", ["added", "x"], ["scaled"]),
        node("Relu", ["scaled"], ["chain"]),
        node("Sigmoid", ["x"], ["sigmoid"]),
        node("Softmax", ["x"], ["softmax"], axis=-1),
        node("ReduceMean", ["sigmoid", "last"], ["mean"]),
        node("ReduceMin", ["x", "last"], ["least"], keepdims=0),
        node("Exp", ["least"], ["exp_least"]),
        node("ReduceMax", ["x", "last"], ["largest"], keepdims=0),
        node("Gemm", ["x", "w", "b"], ["affine"]),
        node("Relu", ["affine"], ["dense"]),
        node("Transpose", ["y"], ["y_t"], perm=[1, 0]),
        node("MatMul", ["x", "y_t"], ["pairs"]),
        node("Reshape", ["x", "images"], ["image"]),
        node("Conv", ["image", "kernel"], ["conv"], pads=[1, 1]),
        node("Less", ["x", "y"], ["less"]),
        node("Where", ["less", "x", "half"], ["where"]),
        node("Concat", ["where", "y"], ["concat"], axis=1),
        node("Cast", ["x"], ["wide"], to=_onnx_type("float64")),
        node("Cast", ["wide"], ["narrow"], to=_onnx_type(dtype)),
        node("Cast", ["y"], ["whole"], to=_onnx_type("int32")),
    ]
    outputs: _Types = {
        **{
            name: (dtype, None)
            for name in (
                "chain sigmoid softmax mean exp_least largest dense pairs conv concat narrow"
            ).split()
        },
        "whole": ("int32", None),
        "less": ("bool", None),
    }
    shape: Sequence[int | str] = ["N", 8]
    return _model(nodes, {"x": (dtype, shape), "y": (dtype, shape)}, outputs, constants)


_SMALL_FLOATS = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
)


def quantized() -> onnx.ModelProto:
    """Quantised numbers of every type, products of them, and types that share bytes."""
    node = helper.make_node
    rng = np.random.default_rng(13)
    constants: dict[str, np.ndarray[Any, Any]] = {
        "scale": np.array(0.05, np.float32),
        "scales": rng.uniform(0.01, 0.2, 8).astype(np.float32),
        "codes": rng.integers(-8, 8, (8, 5)).astype("int4"),
        "code_scales": rng.uniform(0.1, 0.3, 5).astype(np.float32),
        "w": rng.integers(-127, 128, (8, 5)).astype(np.int8),
        "w_zero": rng.integers(-5, 6, 5).astype(np.int8),
        "w_scale": rng.uniform(0.01, 0.02, 5).astype(np.float32),
        "y_zero": np.array(120, np.uint8),
        "images": np.array([-1, 2, 4]),
        "kernel": rng.integers(-127, 128, (3, 2, 3)).astype(np.int8),
        "kernel_scale": np.array(0.015, np.float32),
        "kernel_zero": np.array(0, np.int8),
        "bias": rng.integers(-500, 500, 3).astype(np.int32),
    }
    nodes = []
    outputs: dict[str, tuple[str, None]] = {}

    def keep(name: str, dtype: str) -> None:
        outputs[name] = (dtype, None)

    for dtype in ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"):
        constants[f"{dtype}_zero"] = np.array(1, dtype)
        operands = ["scale", f"{dtype}_zero"]
        nodes += [
            node("QuantizeLinear", ["x", *operands], [f"{dtype}_q"]),
            node("DequantizeLinear", [f"{dtype}_q", *operands], [f"{dtype}_x"]),
        ]
        keep(f"{dtype}_q", dtype)
        keep(f"{dtype}_x", "float32")
    for dtype in _SMALL_FLOATS:
        to = _onnx_type(dtype)
        nodes += [
            node("QuantizeLinear", ["x", "scales"], [f"{dtype}_q"], axis=1, output_dtype=to),
            node("Cast", [f"{dtype}_q"], [f"{dtype}_x"], to=_onnx_type("float16")),
        ]
        keep(f"{dtype}_q", dtype)
        keep(f"{dtype}_x", "float16")
    nodes += [
        node("Cast", ["x"], ["power"], to=_onnx_type("float8_e8m0fnu"), round_mode="nearest"),
        node("Transpose", ["nibbles"], ["turned"], perm=[1, 0]),
        node("DequantizeLinear", ["nibbles", "scale"], ["plain"]),
        node("DequantizeLinear", ["codes", "code_scales"], ["weights"], axis=1),
        node("MatMul", ["x", "weights"], ["dequantized"]),
        node("MatMulInteger", ["uint8_q", "w", "uint8_zero", "w_zero"], ["integers"]),
        node(
            "QLinearMatMul",
            ["uint8_q", "scale", "uint8_zero", "w", "w_scale", "w_zero", "scale", "y_zero"],
            ["product"],
        ),
        node("BitCast", ["x"], ["bits"], to=_onnx_type("int32")),
        node("Reshape", ["uint8_q", "images"], ["image"]),
        node("ConvInteger", ["image", "kernel", "uint8_zero"], ["sums"], pads=[1, 1]),
        node(
            "QLinearConv",
            [
                *("image", "scale", "uint8_zero", "kernel", "kernel_scale", "kernel_zero"),
                *("scale", "y_zero", "bias"),
            ],
            ["convolved"],
        ),
    ]
    for name, dtype in (
        ("power", "float8_e8m0fnu"),
        ("turned", "int4"),
        ("plain", "float32"),
        ("dequantized", "float32"),
        ("integers", "int32"),
        ("product", "uint8"),
        ("bits", "int32"),
        ("sums", "int32"),
        ("convolved", "uint8"),
    ):
        keep(name, dtype)
    inputs: _Types = {"x": ("float32", ["N", 8]), "nibbles": ("int4", ["N", 3])}
    return _model(nodes, inputs, outputs, constants, opset=26)


_MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    **{name: functools.partial(floats, name) for name in ("float16", "bfloat16", "float64")},
    "quantized": quantized,
}


def main() -> None:
    """Writes one model."""
    name, output = sys.argv[1:]
    pathlib.Path(output).write_bytes(_MODELS[name]().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
