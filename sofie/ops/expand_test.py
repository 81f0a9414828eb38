"""Expand against the reference."""

import numpy as np
from onnx import helper

from sofie.testing.operators import graph, hold


def test_both_ways_and_new_axes() -> None:
    model = graph(
        [helper.make_node("Expand", ["x", "s"], ["y"])],
        {"x": ("float32", [3, 1])},
        {"y": "float32"},
        {"s": np.array([2, 1, 6], np.int64)},
    )
    hold(model, [{}])


def test_to_sizes_of_another_input() -> None:
    nodes = [
        helper.make_node("Shape", ["z"], ["s"]),
        helper.make_node("Expand", ["x", "s"], ["y"]),
    ]
    model = graph(
        nodes, {"x": ("float32", ["N", 1]), "z": ("float32", ["N", "M"])}, {"y": "float32"}
    )
    hold(model, [{"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 4, "M": 0}])


def test_two_symbols_stretch_either_way() -> None:
    nodes = [
        helper.make_node("Shape", ["z"], ["s"]),
        helper.make_node("Expand", ["x", "s"], ["y"]),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 1]), "z": ("float32", ["M", 3])}, {"y": "float32"})
    hold(model, [{"N": 1, "M": 4}, {"N": 4, "M": 1}, {"N": 3, "M": 3}])
