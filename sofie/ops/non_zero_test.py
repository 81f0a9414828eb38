"""NonZero against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Array, Dims, graph, hold


def _sparse(x: Array) -> Array:
    return np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, x, 0)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
@pytest.mark.parametrize("shape", [["N"], ["N", "M"], [2, "N", "M"]])
def test_at_several_sizes(shape: Dims, dtype: str) -> None:
    model = graph(
        [helper.make_node("NonZero", ["x"], ["y"])], {"x": (dtype, shape)}, {"y": "int64"}
    )
    sizes = [(4, 5), (1, 1), (0, 3), (7, 2), (9, 9)]
    hold(model, [{"N": n, "M": m} for n, m in sizes], values=_sparse)


def test_none_and_all() -> None:
    model = graph(
        [helper.make_node("NonZero", ["x"], ["y"])], {"x": ("float32", ["N", 3])}, {"y": "int64"}
    )
    hold(model, [{"x": np.full((n, 3), v, np.float32)} for n, v in ((4, 0), (5, 1), (3, np.nan))])


def test_what_is_computed_and_used() -> None:
    """The usual way to select rows: the indices of those that pass, and a gather."""
    nodes = [
        helper.make_node("ReduceMax", ["x", "last"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "zero"], ["c"]),
        helper.make_node("NonZero", ["c"], ["i"]),
        helper.make_node("Squeeze", ["i", "first"], ["rows"]),
        helper.make_node("Gather", ["x", "rows"], ["g"]),
        helper.make_node("Exp", ["g"], ["y"]),
    ]
    constants: dict[str, Array] = {
        "zero": np.array(1, np.float32),
        "last": np.array([1], np.int64),
        "first": np.array([0], np.int64),
    }
    model = graph(nodes, {"x": ("float32", ["N", 2])}, {"y": "float32"}, constants)
    hold(model, [{"N": n} for n in (20, 3, 0, 50, 1)])
