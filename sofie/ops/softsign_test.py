"""Softsign against the reference, at several sizes."""

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_type(dtype: str) -> None:
    model = graph(
        [helper.make_node("Softsign", ["x"], ["y"])], {"x": (dtype, ["N", "M"])}, {"y": dtype}
    )
    hold(model, [{"N": 3, "M": 4}, {"N": 0, "M": 2}, {"N": 1, "M": 50}])
