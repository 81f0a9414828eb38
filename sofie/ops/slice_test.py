"""Slice against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": n} for n in (7, 8, 12, 0, 1, 2)]


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 4, 1), (1, 2**63 - 1, 1), (-3, 2**63 - 1, 1), (1, -1, 2), (0, 2**63 - 1, 2), (2, 6, 3)],
)
def test_along_a_symbolic_axis(start: int, stop: int, step: int) -> None:
    model = graph(
        [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {"x": ("float32", [2, "N"])},
        {"y": "float32"},
        {
            "b": np.array([start], np.int64),
            "e": np.array([stop], np.int64),
            "a": np.array([-1], np.int64),
            "s": np.array([step], np.int64),
        },
    )
    hold(model, _CASES)


@pytest.mark.parametrize(("start", "stop", "step"), [(4, 0, -1), (-1, -6, -2), (9, -100, -1)])
def test_backwards(start: int, stop: int, step: int) -> None:
    model = graph(
        [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {"x": ("float32", ["N", 5])},
        {"y": "float32"},
        {
            "b": np.array([start], np.int64),
            "e": np.array([stop], np.int64),
            "a": np.array([1], np.int64),
            "s": np.array([step], np.int64),
        },
    )
    hold(model, _CASES)


def test_a_number_of_starts_that_depends_on_sizes_is_refused() -> None:
    model = graph(
        [helper.make_node("Slice", ["x", "b", "e"], ["y"], name="cut")],
        {"x": ("float32", ["N"]), "b": ("int64", ["M"]), "e": ("int64", ["M"])},
        {"y": "float32"},
    )
    with pytest.raises(ModelError, match=r"cut \(Slice\): a number of starts"):
        compile_graph(model)
