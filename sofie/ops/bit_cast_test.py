"""BitCast against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_PAIRS = [
    ("float32", "int32"),
    ("int64", "float64"),
    ("float16", "int16"),
    ("uint16", "bfloat16"),
    ("int8", "uint8"),
    ("uint8", "float8_e4m3fn"),
    ("bool", "uint8"),
]


@pytest.mark.parametrize(("source", "target"), _PAIRS)
def test_bits_stay(source: str, target: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    model = graph(
        [helper.make_node("BitCast", ["x"], ["y"], to=to)],
        {"x": (source, ["N", 3])},
        {"y": target},
        opset=26,
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])
