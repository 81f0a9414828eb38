"""Constant in every form, as an operand and as an output."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import compile_graph, graph, hold

_FORMS = [
    ("float32", {"value": onnx.numpy_helper.from_array(np.array([[1, 2.5]], np.float32))}),
    ("float32", {"value_float": 1.5}),
    ("float32", {"value_floats": [1.5, -2.0]}),
    ("int64", {"value_int": 3}),
    ("int64", {"value_ints": [3, -4]}),
    ("bool", {"value": onnx.numpy_helper.from_array(np.array([True, False]))}),
]


@pytest.mark.parametrize(("dtype", "form"), _FORMS)
def test_as_an_output(dtype: str, form: dict[str, Any]) -> None:
    nodes = [helper.make_node("Constant", [], ["c"], **form), helper.make_node("Not", ["x"], ["y"])]
    hold(graph(nodes, {"x": ("bool", ["N"])}, {"c": dtype, "y": "bool"}), [{"N": 2}, {"N": 0}])


@pytest.mark.parametrize(("dtype", "form"), _FORMS[:-1])
def test_as_an_operand(dtype: str, form: dict[str, Any]) -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], **form),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    hold(graph(nodes, {"x": (dtype, ["N", 2])}, {"y": dtype}), [{"N": 2}, {"N": 0}])


def test_strings_are_refused() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value_string="a"),
        helper.make_node("Size", ["c"], ["y"], name="count"),
    ]
    with pytest.raises(ModelError, match=r"count \(Size\): 'c' has the element type STRING"):
        compile_graph(graph(nodes, {"x": ("bool", ["N"])}, {"y": "int64"}))
