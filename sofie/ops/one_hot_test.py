"""OneHot against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_axes(axis: int) -> None:
    model = graph(
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"], axis=axis)],
        {"i": ("int64", ["N", 2]), "v": ("float32", [2])},
        {"y": "float32"},
        {"d": np.array(7, np.int64)},
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


@pytest.mark.parametrize("kind", ["int32", "uint8", "float32", "float64"])
def test_types_of_indices_and_values(kind: str) -> None:
    model = graph(
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"])],
        {"i": (kind, ["N"]), "v": ("int64", [2])},
        {"y": "int64"},
        {"d": np.array(4, np.int64)},
    )
    hold(model, [{"N": 3}], {"i": np.array([3, 0, 9]).astype(kind)})


def test_negative_and_far_indices() -> None:
    model = graph(
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"])],
        {"i": ("int64", ["N"])},
        {"y": "float32"},
        {"d": np.array(4, np.int64), "v": np.array([-1, 2], np.float32)},
    )
    indices = np.array([-1, -4, -5, 4, 2**32, 3], np.int64)
    hold(model, [{"N": 6}], {"i": indices}, against_runtime=True)


def test_a_depth_in_terms_of_sizes() -> None:
    model = graph(
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Gather", ["s", "zero"], ["d"]),
            helper.make_node("OneHot", ["i", "d", "v"], ["h"]),
            helper.make_node("MatMul", ["h", "x"], ["y"]),
        ],
        {"x": ("float32", ["N", 3]), "i": ("int64", ["M"])},
        {"y": "float32"},
        {"v": np.array([0, 1], np.float32), "zero": np.array(0)},
    )
    hold(model, [{"N": 4, "M": 2}, {"N": 9, "M": 1}, {"N": 5, "M": 0}])


@pytest.mark.parametrize("kind", ["float32", "float64", "int32"])
def test_a_depth_that_is_an_input(kind: str) -> None:
    model = graph(
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"])],
        {"i": ("int64", ["N"]), "d": (kind, []), "v": ("float32", [2])},
        {"y": "float32"},
    )
    hold(model, [{"N": 3, "d": np.array(depth, kind)} for depth in (5, 1, 8)])
