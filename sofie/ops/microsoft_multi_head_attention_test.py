"""MultiHeadAttention of com.microsoft against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_CASES: list[dict[str, int | Array]] = [
    {"B": 2, "L": 5, "S": 7, "P": 3, "T": 10},
    {"B": 1, "L": 1, "S": 1, "P": 2, "T": 3},
    {"B": 3, "L": 9, "S": 4, "P": 1, "T": 5},
]
_INPUTS: dict[str, tuple[str, Dims]] = {
    "q": ("float32", ["B", "L", 16]),
    "k": ("float32", ["B", "S", 16]),
    "v": ("float32", ["B", "S", 16]),
    "bias": ("float32", [48]),
    "padding": ("int32", ["B", "S"]),
    "added": ("float32", ["B", 2, "L", "S"]),
    "past_key": ("float32", ["B", 2, "P", 8]),
    "past_value": ("float32", ["B", 2, "P", 8]),
}


def _model(
    names: list[str],
    outputs: tuple[str, ...] = ("y",),
    inputs: dict[str, tuple[str, Dims]] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    kinds = _INPUTS | (inputs or {})
    node = helper.make_node(
        "MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=2, **attributes
    )
    shapes: dict[str, Dims] = {"y": ["B", "L", 16], "pk": ["B", 2, "T", 8], "pv": ["B", 2, "T", 8]}
    return graph(
        [node],
        {name: kinds[name] for name in names if name},
        {name: ("float32", shapes[name]) for name in outputs},
        domains={"com.microsoft": 1},
        opset=17,
    )


def _hold(model: onnx.ModelProto, **options: Any) -> list[str]:
    program = hold(model, _CASES, against_runtime=True, tolerance=1e-5, **options)
    return [type(step).__name__ for step in program.steps]


@pytest.mark.parametrize("names", [["q", "k", "v"], ["q", "k", "v", "bias"]])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}])
def test_operands(names: list[str], attributes: dict[str, Any]) -> None:
    assert _hold(_model(names, **attributes))[-1] == "Attention"


def test_channels_that_do_not_divide_into_heads() -> None:
    odd: Dims = ["B", "S", 15]
    model = _model(["q", "k", "v"], inputs={"k": ("float32", odd), "v": ("float32", odd)})
    with pytest.raises(ModelError, match="do not divide into heads"):
        compile_graph(model)


def test_unidirectional() -> None:
    assert _hold(_model(["q", "q", "q"], unidirectional=1)) == ["Attention"]


@pytest.mark.parametrize("shape", [["B", 2, "L", "S"], [1, 2, "L", "S"], [1, 1, "L", "S"]])
def test_bias_of_scores(shape: Dims) -> None:
    inputs = {"added": ("float32", shape)}
    assert _hold(_model(["q", "k", "v", "", "", "added"], inputs=inputs)) == ["Attention"]


def test_padding() -> None:
    model = _model(["q", "k", "v", "bias", "padding", "added"])
    assert "Attention" in _hold(model, values=lambda x: np.where(x < -4, 0, np.abs(x) / 4 + 0.5))


def test_caches() -> None:
    names = ["q", "k", "v", "", "", "", "past_key", "past_value"]
    assert "Attention" in _hold(_model(names, outputs=("y", "pk", "pv")))


def test_keys_with_their_heads_apart() -> None:
    inputs: dict[str, tuple[str, Dims]] = {
        "k": ("float32", ["B", 2, "S", 8]),
        "v": ("float32", ["B", 2, "S", 8]),
    }
    assert _hold(_model(["q", "k", "v"], inputs=inputs)) == ["Attention"]
