"""ConstantOfShape against the reference."""

import onnx
from onnx import helper

from sofie.testing.operators import graph, hold


def test_shape_from_sizes() -> None:
    value = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [2.5])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=value),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 2])}, {"y": "float32"})
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])
