"""Writes a small ONNX model whose shapes depend on the elements of tensors.

    data_shapes output.onnx

Some of these tensors are inputs, others are computed, one from what another one decides about.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET = 21


def build() -> onnx.ModelProto:
    """The model; ``tests/data_shapes_test.cc`` says in C++ what it computes."""
    constants = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "first": np.array([0], np.int64),
    }
    nodes = [
        # Decided by inputs.
        helper.make_node("TopK", ["x", "k"], ["top", "top_rows"], "top", axis=0),
        helper.make_node("ReduceSum", ["x", "axis"], ["sums"], "sum"),
        # Decided by what is computed from an input.
        helper.make_node("Cast", ["stop"], ["stop_row"], "stop", to=TensorProto.INT64),
        helper.make_node("Slice", ["x", "first", "stop_row", "first"], ["head"], "head"),
        # And by what is computed from that: the number of rows with a positive first element.
        helper.make_node("Slice", ["head", "first", "limit", "second"], ["column"], "column"),
        helper.make_node("Sign", ["column"], ["signs"], "signs"),
        helper.make_node("Relu", ["signs"], ["positive"], "positive"),
        helper.make_node("ReduceSum", ["positive"], ["total"], "total", keepdims=0),
        helper.make_node("Cast", ["total"], ["count"], "count", to=TensorProto.INT64),
        helper.make_node("Range", ["zero", "count", "one"], ["numbers"], "numbers"),
    ]
    constants["limit"] = np.array([1], np.int64)
    constants["second"] = np.array([1], np.int64)

    def value(name: str, dtype: int, shape: list[int | str]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        nodes,
        "data_shapes",
        [
            value("x", TensorProto.FLOAT, ["N", 4]),
            value("k", TensorProto.INT64, [1]),
            value("axis", TensorProto.INT64, [1]),
            value("stop", TensorProto.FLOAT, [1]),
        ],
        [
            value("top", TensorProto.FLOAT, ["K", 4]),
            value("sums", TensorProto.FLOAT, ["rows", "columns"]),
            value("head", TensorProto.FLOAT, ["M", 4]),
            value("numbers", TensorProto.INT64, ["C"]),
        ],
        [numpy_helper.from_array(a, name) for name, a in constants.items()],
    )
    imports = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_bytes(build().SerializeToString())
