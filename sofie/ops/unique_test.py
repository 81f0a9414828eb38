"""Unique against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_all_outputs(dtype: str, is_sorted: int) -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], sorted=is_sorted)],
        {"x": (dtype, ["N"])},
        {"y": dtype, "i": "int64", "v": "int64", "c": "int64"},
    )
    rng = np.random.default_rng(3)
    hold(model, [{"x": rng.integers(-3, 4, n).astype(dtype)} for n in (10, 1, 30, 3)])


def test_values_alone() -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y"], axis=0)], {"x": ("int32", ["N"])}, {"y": "int32"}
    )
    hold(model, [{"x": np.array(x, np.int32)} for x in ([3, 3, 1], [5], [2, 2, 2, 2], [4, 1, 3])])


_AXES: list[tuple[Dims, int]] = [
    (["N", 3], 0),
    ([3, "N"], 1),
    ([2, "N", 3], -2),
    (["N", "M"], 0),
    (["M", 2, "N"], 2),
]


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(("shape", "axis"), _AXES)
def test_slices(shape: Dims, axis: int, dtype: str, is_sorted: int) -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], axis=axis, sorted=is_sorted)],
        {"x": (dtype, shape)},
        {"y": dtype, "i": "int64", "v": "int64", "c": "int64"},
    )
    sizes = [{"N": 10, "M": 2}, {"N": 1, "M": 1}, {"N": 30, "M": 4}, {"N": 3, "M": 1}]
    # The reference takes unsorted slices along axis 0 whatever the axis is.
    hold(model, sizes, values=lambda x: np.abs(np.round(x)) % 2, against_runtime=not is_sorted)


def test_zeros_of_both_signs_are_equal() -> None:
    model = graph(
        [helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], axis=0)],
        {"x": ("float32", ["N", 2])},
        {"y": "float32", "i": "int64", "v": "int64", "c": "int64"},
    )
    x = np.array([[0.0, 1.0], [0.0, 0.0], [-0.0, 1.0], [-0.0, -1.0]], np.float32)
    hold(model, [{"x": x}, {"x": x[::-1].copy()}])
