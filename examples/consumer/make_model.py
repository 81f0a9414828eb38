"""Writes trigger.onnx: what three features have above a threshold each, added, less a constant.

python make_model.py    (needs the packages numpy and onnx)
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_THRESHOLDS = [-1.0, -2.0, -3.0]
_CONSTANT = [-4.0]


def model() -> onnx.ModelProto:
    """The model: score = Relu(features - thresholds) @ ones - 4."""
    initializers = {
        "identity": np.eye(3, dtype=np.float32),
        "thresholds": np.array(_THRESHOLDS, np.float32),
        "ones": np.ones((3, 1), np.float32),
        "constant": np.array(_CONSTANT, np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["features", "identity", "thresholds"], ["above"]),
            helper.make_node("Relu", ["above"], ["excess"]),
            helper.make_node("Gemm", ["excess", "ones", "constant"], ["score"]),
        ],
        "trigger",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    onnx.save(model(), "trigger.onnx")
