"""Range against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import compile_graph, graph, hold


def test_limit_from_a_size() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Squeeze", ["s"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["r"]),
        helper.make_node("Add", ["r", "r"], ["y"]),
    ]
    constants = {"zero": np.array(0), "one": np.array(1)}
    model = graph(nodes, {"x": ("float32", ["N"])}, {"y": "int64"}, constants)
    hold(model, [{"N": 3}, {"N": 0}, {"N": 8}])


def test_limit_from_data_is_refused() -> None:
    model = graph(
        [helper.make_node("Range", ["zero", "n", "one"], ["y"], name="count")],
        {"n": ("int64", [])},
        {"y": "int64"},
        {"zero": np.array(0), "one": np.array(1)},
    )
    with pytest.raises(ModelError, match=r"count \(Range\): .* depends on data"):
        compile_graph(model)
