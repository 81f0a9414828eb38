"""Mean against the reference, at several sizes."""

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold


# The reference evaluator wants the widest input first.
@pytest.mark.parametrize("others", [[["N", "M"]], [["M"], ["N", 1]], [[], ["N", "M"]]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_broadcast(others: list[Dims], dtype: str) -> None:
    shapes: list[Dims] = [["N", "M"], *others]
    names = [f"x{i}" for i in range(len(shapes))]
    model = graph(
        [helper.make_node("Mean", names, ["y"])],
        {n: (dtype, shape) for n, shape in zip(names, shapes, strict=True)},
        {"y": dtype},
    )
    hold(model, [{"N": 5, "M": 3}, {"N": 1, "M": 7}, {"N": 0, "M": 2}])
