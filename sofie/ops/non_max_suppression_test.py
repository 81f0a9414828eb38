"""NonMaxSuppression against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Array, graph, hold


def _boxes(rng: np.random.Generator, batch: int, count: int, centre: bool) -> Array:
    corner, size = rng.random((2, batch, count, 2))
    other = size / 2 if centre else corner + (size - 0.25) / 2
    return np.concatenate([corner, other], axis=2).astype(np.float32)


def _cases(centre: bool, sizes: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {
            "boxes": _boxes(rng, batch, count, centre),
            # Few different scores, so that some are equal.
            "scores": rng.integers(0, 6, (batch, classes, count)).astype(np.float32) / 8,
            "most": np.array([1 + count // 3]),
        }
        for batch, classes, count in sizes
    ]


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("operands", [1, 2, 3])
def test_sizes(centre: bool, operands: int) -> None:
    names = ["boxes", "scores", "most", "overlap", "bound"][: 2 + operands]
    thresholds = {"overlap": np.array([0.25], np.float32), "bound": np.array([0.3], np.float32)}
    model = graph(
        [helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=int(centre))],
        {
            "boxes": ("float32", ["B", "N", 4]),
            "scores": ("float32", ["B", "C", "N"]),
            "most": ("int64", [1]),
        },
        {"y": "int64"},
        {name: value for name, value in thresholds.items() if name in names},
    )
    cases = _cases(centre, [(2, 3, 12), (1, 1, 1), (1, 2, 30), (2, 1, 4)])
    hold(model, cases, against_runtime=True)


@pytest.mark.parametrize("most", [0, -1, 3, 2**62])
def test_the_most_that_a_class_may_have(most: int) -> None:
    model = graph(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])],
        {"boxes": ("float32", [1, "N", 4]), "scores": ("float32", [1, 2, "N"])},
        {"y": "int64"},
        {"most": np.array([most]), "overlap": np.array([0.5], np.float32)},
    )
    cases = [
        {name: case[name] for name in ("boxes", "scores")}
        for case in _cases(False, [(1, 2, 9), (1, 2, 1), (1, 2, 14)])
    ]
    hold(model, cases, against_runtime=most >= 0, reference=None if most >= 0 else _nothing)


def _nothing(_: Any) -> list[Array]:
    return [np.zeros((0, 3), np.int64)]


def test_no_boxes_at_all() -> None:
    model = graph(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"])],
        {"boxes": ("float32", ["B", "N", 4]), "scores": ("float32", ["B", "C", "N"])},
        {"y": "int64"},
        {"most": np.array([5])},
    )
    sizes = [{"B": 1, "N": 0, "C": 2}, {"B": 0, "N": 3, "C": 2}, {"B": 1, "N": 3, "C": 0}]
    hold(model, sizes, reference=_nothing)


def test_a_box_without_an_area_overlaps_nothing() -> None:
    model = graph(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])],
        {"boxes": ("float32", [1, "N", 4]), "scores": ("float32", [1, 1, "N"])},
        {"y": "int64"},
        {"most": np.array([9]), "overlap": np.array([0.0], np.float32)},
    )
    boxes = np.array([[[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]]], np.float32)
    scores = np.array([[[0.5, -np.inf, 0.25, 0.75]]], np.float32)
    hold(model, [{"boxes": boxes, "scores": scores}], against_runtime=True)
