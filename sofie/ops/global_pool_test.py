"""GlobalAveragePool and GlobalMaxPool against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold


# The reference evaluator's GlobalMaxPool takes images only.
@pytest.mark.parametrize(
    ("op_type", "shape"),
    [
        ("GlobalAveragePool", ["N", 3, "M"]),
        ("GlobalAveragePool", ["N", 3, "M", 5]),
        ("GlobalMaxPool", ["N", 3, "M", 5]),
    ],
)
def test_ranks(op_type: str, shape: Dims) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"])], {"x": ("float32", shape)}, {"y": "float32"}
    )
    hold(model, [{"N": 2, "M": 8}, {"N": 1, "M": 1}, {"N": 3, "M": 2}])
