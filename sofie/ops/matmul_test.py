"""MatMul against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 2}]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["N", 4], [4, "M"]),
        ([4], [4, "M"]),
        (["N", 4], [4]),
        ([4], [4]),
        (["N", 3, 4], ["N", 4, "M"]),
        (["N", 3, 4], [4, "M"]),
        ([3, 4], ["N", 4, "M"]),
        ([2, 1, 3, 4], [5, 4, 6]),
        (["N", 1, 3, "M"], [2, "M", 2]),
        ([1, "N", 3, 4], [2, 1, 4, 5]),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint64"])
def test_shapes(left: Dims, right: Dims, dtype: str) -> None:
    model = graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        {"a": (dtype, left), "b": (dtype, right)},
        {"y": dtype},
    )
    hold(model, _CASES)


def test_transposed_operands_are_read_in_place() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t", "x"], ["y"]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 3, "M"])}, {"y": "float32"})
    program = hold(model, _CASES)
    assert len(program.steps) == 1
