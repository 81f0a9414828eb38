"""Clip against the reference, at several sizes."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import Array, graph, hold, hold_elementwise

_CASES = [{"N": 5, "M": 3}, {"N": 0, "M": 1}, {"N": 1, "M": 40}]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8"])
@pytest.mark.parametrize("limits", [["low", "high"], ["low"], ["", "high"], []])
def test_limits_may_be_absent(dtype: str, limits: list[str]) -> None:
    shapes = {"x": (dtype, ["N", "M"]), **{name: (dtype, []) for name in limits if name}}
    model = graph([helper.make_node("Clip", ["x", *limits], ["y"])], shapes, {"y": dtype})
    values: dict[str, Array] = {"low": np.array(1, dtype), "high": np.array(3, dtype)}
    hold(model, _CASES, {name: values[name] for name in limits if name})


def test_the_upper_limit_wins() -> None:
    model = graph(
        [helper.make_node("Clip", ["x", "low", "high"], ["y"])],
        {"x": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"low": np.array(2, np.float32), "high": np.array(-1, np.float32)},
        opset=13,
    )
    hold(model, _CASES)


@pytest.mark.parametrize("limits", [{"min": -0.5, "max": 0.25}, {"min": 0.1}, {"max": 0.1}, {}])
def test_limits_as_attributes(limits: dict[str, float]) -> None:
    hold_elementwise("Clip", ["float32", "float64"], opset=6, attributes=limits)
