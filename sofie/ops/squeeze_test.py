"""Squeeze against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

# Gives a graph whose shapes are not known an output of known shape.
_SIZE = helper.make_node("Size", ["s"], ["y"])


def test_axes_as_input_and_negative() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x", "a"], ["y"])],
        {"x": ("float32", [1, "N", 1, 3])},
        {"y": "float32"},
        {"a": np.array([0, -2], np.int64)},
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


def test_axes_as_attribute() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x"], ["y"], axes=[1])],
        {"x": ("float32", ["N", 1, 3])},
        {"y": "float32"},
        opset=11,
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


def test_a_squeezed_axis_must_have_one_element() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x", "a"], ["y"], name="drop")],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"a": np.array([1], np.int64)},
    )
    hold(model, [{"N": 4, "M": 1}, {"N": 0, "M": 1}])
    message = "drop: the extent of squeezed axis 1 and 1 must be equal, but are 2 and 1"
    with pytest.raises(interpreter.RequirementError, match=message):
        interpreter.run(compile_graph(model), {"x": np.ones((3, 2), np.float32)})


def test_all_axes_of_one_element() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x"], ["y"])], {"x": ("float32", [1, 3, 1])}, {"y": "float32"}
    )
    hold(model, [{}])


def test_without_axes_sizes_must_be_known() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x"], ["s"], name="drop"), _SIZE],
        {"x": ("float32", [1, "N"])},
        {"y": "int64"},
    )
    with pytest.raises(ModelError, match=r"drop \(Squeeze\): .*give it axes"):
        compile_graph(model)


def test_a_number_of_axes_that_depends_on_sizes_is_refused() -> None:
    model = graph(
        [helper.make_node("Squeeze", ["x", "a"], ["s"], name="drop"), _SIZE],
        {"x": ("float32", [1, 1, 3]), "a": ("int64", ["N"])},
        {"y": "int64"},
    )
    with pytest.raises(ModelError, match=r"drop \(Squeeze\): a number of axes"):
        compile_graph(model)
