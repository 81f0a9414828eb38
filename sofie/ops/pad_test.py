"""Pad against the reference; negative pads against ONNX Runtime, as the reference refuses them."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_CASES = [{"N": 5}, {"N": 3}, {"N": 8}]


def _pad(mode: str, pads: Sequence[int], dtype: str = "float32") -> onnx.ModelProto:
    return graph(
        [helper.make_node("Pad", ["x", "p"], ["y"], mode=mode, name="frame")],
        {"x": (dtype, [2, "N"])},
        {"y": dtype},
        {"p": np.array(pads, np.int64)},
    )


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 2, 0, 0], [1, 0, 0, 2], [0, 0, 0, 0], [1, 2, 1, 2]])
def test_modes(mode: str, pads: list[int]) -> None:
    hold(_pad(mode, pads), _CASES)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_more_than_there_is(mode: str) -> None:
    hold(_pad(mode, [0, 9, 0, 11]), [{"N": n} for n in (1, 2, 3, 4)])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, -1, 0, -2], [0, -1, 0, 2], [0, 2, 0, -1]])
def test_negative_pads_remove(mode: str, pads: list[int]) -> None:
    hold(_pad(mode, pads), [{"N": 5}, {"N": 4}, {"N": 9}], against_runtime=True)


def test_an_empty_axis() -> None:
    hold(_pad("constant", [0, 1, 0, 2]), [{"N": 0}])
    hold(_pad("edge", [1, 0, 1, 0]), [{"N": 0}])
    with pytest.raises(interpreter.RequirementError, match="frame: axis 1 has no element"):
        interpreter.run(
            compile_graph(_pad("edge", [0, 1, 0, 0])), {"x": np.ones((2, 0), np.float32)}
        )
    with pytest.raises(interpreter.RequirementError, match="frame: pads leave -1 elements"):
        interpreter.run(
            compile_graph(_pad("constant", [0, -2, 0, 0])), {"x": np.ones((2, 1), np.float32)}
        )


@pytest.mark.parametrize("dtype", ["float64", "int64", "int8", "uint8", "bool"])
def test_a_value_and_axes(dtype: str) -> None:
    model = graph(
        [helper.make_node("Pad", ["x", "p", "v", "a"], ["y"])],
        {"x": (dtype, ["N", 3, 2]), "v": (dtype, [])},
        {"y": dtype},
        {"p": np.array([1, 2, 0, 1], np.int64), "a": np.array([-1, 0], np.int64)},
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


@pytest.mark.parametrize("opset", [7, 10])
def test_pads_as_attribute(opset: int) -> None:
    model = graph(
        [helper.make_node("Pad", ["x"], ["y"], pads=[1, 0, 0, 2], value=2.5)],
        {"x": ("float32", ["N", 3])},
        {"y": "float32"},
        opset=opset,
    )
    hold(model, [{"N": 4}, {"N": 0}, {"N": 1}])


def test_pads_in_terms_of_sizes() -> None:
    model = graph(
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Sub", ["target", "s"], ["after"]),
            helper.make_node("Concat", ["zero", "after"], ["p"], axis=0),
            helper.make_node("Pad", ["x", "p"], ["z"]),
            helper.make_node("Neg", ["z"], ["y"]),
        ],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"target": np.array([4, 6], np.int64), "zero": np.array([0, 0], np.int64)},
    )
    hold(model, [{"N": 3, "M": 2}, {"N": 0, "M": 6}, {"N": 4, "M": 1}])


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_axes_that_are_an_input(mode: str) -> None:
    model = graph(
        [helper.make_node("Pad", ["x", "p", "", "a"], ["y"], mode=mode)],
        {"x": ("float32", ["N", 3, 2]), "p": ("int64", [4]), "a": ("int64", [2])},
        {"y": ("float32", ["A", "B", "C"])},
    )
    pads = np.array([1, 0, 2, 1], np.int64)
    cases: list[dict[str, int | np.ndarray]] = [
        {"N": n, "a": np.array(axes), "p": pads} for n, axes in ((2, [0, 2]), (1, [-2, 0]))
    ]
    program = hold(model, cases)
    x = np.ones((2, 3, 2), np.float32)
    for axes, reason in (([1, -2], "given twice"), ([0, 3], "out of range")):
        with pytest.raises(interpreter.RequirementError, match=reason):
            interpreter.run(program, {"x": x, "p": pads, "a": np.array(axes)})
