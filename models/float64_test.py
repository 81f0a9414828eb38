"""Tests of the conversion to float64."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from models.float64 import to_float64


def _model() -> onnx.ModelProto:
    """y = float(i) / (x + 3), and the indices of the largest of x."""
    third = numpy_helper.from_array(np.array(3, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["three"], value=third),
        helper.make_node("Add", ["x", "three"], ["sum"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["f", "sum"], ["quotient"]),
        helper.make_node("Mul", ["quotient", "scale"], ["y"]),
        helper.make_node("ArgMax", ["x"], ["best"], axis=0, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "quotient",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("i", TensorProto.INT64, ["n"]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("best", TensorProto.INT64, []),
        ],
        [numpy_helper.from_array(np.array([0.5], np.float32), "scale")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_computes_in_float64() -> None:
    model = to_float64(_model())
    onnx.checker.check_model(model, full_check=True)
    x, i = np.array([4.0, 1.0]), np.array([1, 2])
    y, best = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": x, "i": i}))
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [0.5 / 7, 0.25])
    assert best.dtype == np.int64


def test_leaves_its_argument_alone() -> None:
    model = _model()
    before = model.SerializeToString(deterministic=True)
    to_float64(model)
    assert model.SerializeToString(deterministic=True) == before
