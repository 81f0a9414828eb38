"""Softmax, LogSoftmax and Hardmax against the reference."""

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold

_CASES = [{"N": 2, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 70}, {"N": 0, "M": 3}]
_OPERATORS = ["Softmax", "LogSoftmax", "Hardmax"]


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_axis(op_type: str, axis: int, dtype: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"], axis=axis)],
        {"x": (dtype, ["N", 3, "M"])},
        {"y": dtype},
    )
    hold(model, _CASES[:3])


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -2])
@pytest.mark.parametrize("opset", [9, 11])
def test_before_opset_13_a_row_is_all_that_follows(
    op_type: str, axis: int | None, opset: int
) -> None:
    old = graph(
        [helper.make_node(op_type, ["x"], ["y"], axis=axis)],
        {"x": ("float32", ["N", 3, "M"])},
        {"y": "float32"},
        opset=opset,
    )
    program = compile_graph(old)
    x = np.random.default_rng(3).standard_normal((4, 3, 5)).astype(np.float32)
    start = 1 if axis is None else axis % 3
    rows = x.reshape(-1, int(np.prod(x.shape[start:])))
    shifted = rows - rows.max(axis=1, keepdims=True)
    expected = {
        "Softmax": np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True),
        "LogSoftmax": shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)),
        "Hardmax": (shifted == 0).astype(np.float32),
    }[op_type]
    (actual,) = interpreter.run(program, {"x": x})
    np.testing.assert_allclose(actual, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


def test_hardmax_takes_the_first_of_equals() -> None:
    model = graph(
        [helper.make_node("Hardmax", ["x"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
    )
    hold(model, _CASES, values=np.round)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_large_numbers_do_not_overflow(op_type: str) -> None:
    model = graph(
        [helper.make_node(op_type, ["x"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"].astype(np.float64)
        shifted = x - x.max(axis=1, keepdims=True)
        logarithm = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        result = np.exp(logarithm) if op_type == "Softmax" else logarithm
        return [result.astype(np.float32)]

    hold(model, _CASES, values=lambda x: 1000 * x, tolerance=1e-4, reference=reference)
