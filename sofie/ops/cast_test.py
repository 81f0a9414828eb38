"""Cast against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_TYPES = ["float16", "bfloat16", "float32", "float64", "int32", "int64", "bool"]


@pytest.mark.parametrize("target", _TYPES)
@pytest.mark.parametrize("source", _TYPES)
def test_every_pair(source: str, target: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    model = graph(
        [helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": (source, ["N", 3])}, {"y": target}
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])
