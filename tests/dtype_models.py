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
    opset = helper.make_opsetid("", _OPSET)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[opset], ir_version=10)
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


_MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    name: functools.partial(floats, name) for name in ("float16", "bfloat16", "float64")
}


def main() -> None:
    """Writes one model."""
    name, output = sys.argv[1:]
    pathlib.Path(output).write_bytes(_MODELS[name]().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
