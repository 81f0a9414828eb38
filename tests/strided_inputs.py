"""Writes a small ONNX model for tests of inputs with strides: kernels and a library read its input.

strided_inputs output.onnx
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET = 21


def build() -> onnx.ModelProto:
    """The model; ``tests/strided_inputs_test.cc`` says in C++ what it computes."""
    constants: dict[str, np.ndarray] = {
        "two": np.array(2, np.float32),
        "last": np.array([2], np.int64),
        "w": np.arange(-5, 7, dtype=np.float32).reshape(3, 4),
    }
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["doubled"], "double"),
        helper.make_node("Add", ["doubled", "b"], ["moved"], "move"),
        helper.make_node("ReduceSum", ["x", "last"], ["sums"], "sum", keepdims=0),
        helper.make_node("Transpose", ["x"], ["points"], "transpose", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["points", "w"], ["product"], "product"),
    ]

    def value(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes,
        "strided_inputs",
        [value("x", ["N", 3, "P"]), value("b", ["P"])],
        [
            value("moved", ["N", 3, "P"]),
            value("sums", ["N", 3]),
            value("product", ["N", "P", 4]),
        ],
        [numpy_helper.from_array(a, name) for name, a in constants.items()],
    )
    imports = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_bytes(build().SerializeToString())
