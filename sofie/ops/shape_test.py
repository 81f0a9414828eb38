"""Shape against the reference."""

import pytest
from onnx import helper

from sofie.testing.operators import graph, hold

_CASES = [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 0}]


def test_as_an_output() -> None:
    model = graph(
        [helper.make_node("Shape", ["x"], ["y"])], {"x": ("float32", ["N", 2, "M"])}, {"y": "int64"}
    )
    hold(model, _CASES)


@pytest.mark.parametrize(("start", "end"), [(1, 3), (-2, 3), (0, -1)])
def test_parts(start: int, end: int) -> None:
    model = graph(
        [helper.make_node("Shape", ["x"], ["y"], start=start, end=end)],
        {"x": ("float32", ["N", 2, "M"])},
        {"y": "int64"},
    )
    hold(model, _CASES)


def test_of_a_scalar_is_empty() -> None:
    model = graph([helper.make_node("Shape", ["x"], ["y"])], {"x": ("float32", [])}, {"y": "int64"})
    hold(model, [{}])
