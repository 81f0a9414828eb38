"""Attention is found where a softmax lies between two matrix products, and nowhere else."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.load import load
from sofie.ir.program import Attention, Program
from sofie.passes import clean, fuse_attention
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, graph, hold, import_model

_MODELS = pathlib.Path(__file__).parents[2] / "models"
_CASES = [{"B": 2, "L": 5, "S": 7}, {"B": 1, "L": 1, "S": 1}, {"B": 3, "L": 9, "S": 4}]
_CONSTANTS: dict[str, Array] = {
    "root": np.array(8**-0.25, np.float32),
    "wide": np.array([8**0.5], np.float32),
    "half": np.array(0.5, np.float32),
}


def _node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], name=output, **attributes)


def _model(
    between: Sequence[onnx.NodeProto],
    biases: dict[str, Dims] | None = None,
    batch: Dims = ("B", 4),
    dtype: str = "float32",
    outputs: Sequence[str] = ("y",),
    before: Sequence[onnx.NodeProto] = (),
    names: str = "q kt",
    depth: int | str = 8,
    axis: int = -1,
) -> onnx.ModelProto:
    """Products with some nodes between: from scores ``s`` to what the softmax reads, ``t``."""
    nodes = [
        *before,
        _node("MatMul", names, "s"),
        *between,
        _node("Softmax", "t", "w", axis=axis),
        _node("MatMul", "w v", "y"),
    ]
    inputs: dict[str, Dims] = {
        "q": [*batch, "L", depth],
        "kt": [*batch, depth, "S"],
        "v": [*batch, "S", 6],
        **(biases or {}),
    }
    constants = {name: array.astype(dtype) for name, array in _CONSTANTS.items()}
    return graph(
        nodes,
        {name: (dtype, shape) for name, shape in inputs.items()},
        dict.fromkeys(outputs, dtype),
        constants,
    )


def _count(program: Program) -> int:
    return sum(isinstance(step, Attention) for step in program.steps)


_ADD = _node("Add", "s bias", "t")
_SCALED = [_node("Div", "s wide", "scaled"), _node("Add", "bias scaled", "t")]


@pytest.mark.parametrize(
    "bias",
    [["S"], ["L", "S"], [4, "L", "S"], ["B", 1, 1, "S"], ["B", 4, "L", "S"], ["B", 4, "L", 1], []],
)
@pytest.mark.parametrize("between", [[_ADD], _SCALED])
def test_biases_and_scales(bias: Dims, between: list[onnx.NodeProto]) -> None:
    program = hold(_model(between, {"bias": bias}), _CASES)
    assert [type(step).__name__ for step in program.steps][0] == "Attention"
    assert _count(program) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("batch", [(), ("B",), ("B", 4)])
def test_types_and_ranks(dtype: str, batch: Dims) -> None:
    model = _model([_node("Mul", "half s", "t")], batch=batch, dtype=dtype)
    assert _count(hold(model, _CASES)) == 1


def test_several_biases_and_scales() -> None:
    between = [
        _node("Mul", "s half", "a"),
        _node("Div", "a wide", "b"),
        _node("Add", "b bias", "c"),
        _node("Add", "other c", "t"),
    ]
    model = _model(between, {"bias": ["L", "S"], "other": ["B", 1, 1, "S"]})
    assert _count(hold(model, _CASES)) == 1


def test_scales_of_both_operands() -> None:
    before = [_node("Mul", "q root", "qs"), _node("Mul", "root kt", "ks")]
    model = _model([_ADD], {"bias": ["L", "S"]}, before=before, names="qs ks")
    program = hold(model, _CASES)
    (step,) = [s for s in program.steps if isinstance(s, Attention)]
    # Numbers are numbers: operands are read from memory as they are.
    assert step.scale == pytest.approx(8**-0.5)
    assert {b.name for b in step.reads()} == {"q", "kt", "v", "bias"}


@pytest.mark.parametrize("op_type", ["Mul", "Div"])
def test_a_scale_that_is_no_constant(op_type: str) -> None:
    model = _model([_node(op_type, "s factor", "t")], {"factor": [1]})
    assert _count(hold(model, _CASES, values=lambda x: np.abs(x) + 0.5)) == 1


def test_operands_that_broadcast() -> None:
    nodes = [_node("MatMul", "q kt", "s"), _node("Softmax", "s", "w"), _node("MatMul", "w v", "y")]
    inputs: dict[str, tuple[str, Dims]] = {
        "q": ("float32", ["B", 4, "L", 8]),
        "kt": ("float32", ["B", 1, 8, "S"]),
        "v": ("float32", [1, 4, "S", 8]),
    }
    assert _count(hold(graph(nodes, inputs, {"y": "float32"}), _CASES)) == 1


def test_a_row_of_infinities_is_what_softmax_makes_of_it() -> None:
    bias = np.zeros((5, 3), np.float32)
    bias[1], bias[3, :2] = -np.inf, -np.inf
    model = _model([_ADD], {"bias": ["L", "S"]})
    assert _count(hold(model, [{"B": 2, "L": 5, "S": 3, "bias": bias}])) == 1


@pytest.mark.parametrize(
    "model",
    [
        _model([_ADD], {"bias": ["L", "S"]}, outputs=["y", "w"]),
        _model([_ADD], {"bias": ["L", "S"]}, outputs=["y", "s"]),
        _model([_ADD, _node("Relu", "s", "z")], {"bias": ["L", "S"]}, outputs=["y", "z"]),
        _model([_ADD], {"bias": ["L", "S"]}, axis=2),
        _model([_ADD], {"bias": ["L", "S"]}, depth="D"),
        _model([_ADD], {"bias": ["L", "S"]}, batch=["B", 2, 2]),
        _model([_node("Add", "s bias", "a"), _node("Mul", "a half", "t")], {"bias": ["L", "S"]}),
        _model([_node("Mul", "s bias", "t")], {"bias": ["L", "S"]}),
        _model([_node("Div", "bias s", "t")], {"bias": [1]}),
        _model([_node("Sub", "s bias", "t")], {"bias": ["L", "S"]}),
        _model([_node("Relu", "s", "t")]),
    ],
    ids=[
        "weights are an output",
        "scores are an output",
        "scores have another reader",
        "another axis",
        "channels",
        "rank",
        "scaled bias",
        "a factor for each score",
        "an inverse",
        "a difference",
        "an activation",
    ],
)
def test_what_is_not_attention_stays_as_it_is(model: onnx.ModelProto) -> None:
    cases = [{**case, "D": 8} for case in _CASES]
    assert _count(hold(model, cases, tolerance=1e-4)) == 0


def test_a_bias_that_stretches_the_scores_stays() -> None:
    between = [_node("Add", "s bias", "t")]
    nodes = [
        _node("MatMul", "q kt", "s"),
        *between,
        _node("Softmax", "t", "w"),
        _node("MatMul", "w v", "y"),
    ]
    inputs: dict[str, tuple[str, Dims]] = {
        "q": ("float32", [1, 4, "L", 8]),
        "kt": ("float32", [1, 4, 8, "S"]),
        "v": ("float32", [1, 4, "S", 8]),
        "bias": ("float32", ["B", 1, "L", "S"]),
    }
    assert _count(hold(graph(nodes, inputs, {"y": "float32"}), _CASES)) == 0


def _inputs(name: str) -> dict[str, Array]:
    rng = np.random.default_rng(7)
    present = np.array([[1] * 9, [1] * 5 + [0] * 4], np.float32)
    if name == "exported/encoder":
        return {
            "features": rng.standard_normal((2, 9, 16)).astype(np.float32),
            "padding": present == 0,
        }
    if name == "transformer":
        return {"features": rng.standard_normal((2, 9, 16)).astype(np.float32), "mask": present}
    return {
        "features": rng.standard_normal((2, 20, 9)).astype(np.float32),
        "kinematics": rng.standard_normal((2, 3, 9)).astype(np.float32),
        "mask": present[:, None],
    }


@pytest.mark.parametrize(
    ("name", "layers"), [("transformer", 6), ("particle_transformer", 6), ("exported/encoder", 2)]
)
def test_every_layer_of_the_models_is_found(name: str, layers: int) -> None:
    inputs = _inputs(name)
    results = []
    for passes in ([clean], [clean, fuse_attention]):
        model = load(_MODELS / f"{name}.onnx")
        for one in passes:
            one.run(model)
        program = lower(model)
        assert _count(program) == (layers if fuse_attention in passes else 0)
        results.append(interpreter.run(program, inputs)[0])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_the_pass_alone_keeps_the_result() -> None:
    proto = _model([_ADD], {"bias": ["L", "S"]})
    shapes = {"q": (2, 4, 3, 8), "kt": (2, 4, 8, 5), "v": (2, 4, 5, 6), "bias": (3, 5)}
    rng = np.random.default_rng(5)
    inputs = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    model = import_model(proto)
    expected = interpreter.run(lower(import_model(proto)), inputs)[0]
    fuse_attention.run(model)
    actual = interpreter.run(lower(model), inputs)[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
