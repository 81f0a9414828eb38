"""Rows with sizes of their own come out as each does alone, according to ONNX's reference."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.importer.load import load
from sofie.ir.program import Program
from sofie.passes import pipeline
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, graph

_PARTICLE_NET = pathlib.Path(__file__).parents[2] / "models" / "particle_net.onnx"


def _node(op_type: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), name=op_type, **attributes)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Dims],
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
) -> onnx.ModelProto:
    typed = {name: ("float32", shape) for name, shape in inputs.items()}
    return graph(nodes, typed, dict.fromkeys(outputs, "float32"), constants)


def _lower(model: onnx.ModelProto, sizes: Sequence[str], folder: pathlib.Path) -> Program:
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    loaded = load(path)
    check(loaded)
    pipeline.run(loaded)
    return lower(loaded, ragged_sizes=sizes)


def _sizes_of(model: onnx.ModelProto) -> dict[str, list[str | int]]:
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }


def _hold(
    model: onnx.ModelProto,
    program: Program,
    cases: Sequence[Sequence[Mapping[str, int]]],
    masks: Sequence[str] = (),
) -> None:
    """One case is the sizes of each row."""
    evaluator = ReferenceEvaluator(model)
    ragged = [
        name.removesuffix("_offsets")
        for name in (b.name for b in program.inputs)
        if name.endswith("_offsets")
    ]
    rng = np.random.default_rng(5)
    for rows in cases:
        inputs: dict[str, list[Array]] = {}
        expected: list[list[Array]] = []
        for row in rows:
            feeds = {}
            for name, shape in _sizes_of(model).items():
                extents = [1 if d == "N" else row[d] if isinstance(d, str) else d for d in shape]
                drawn = np.ones(extents) if name in masks else rng.normal(size=extents)
                feeds[name] = drawn.astype(np.float32)
                axis = next((i for i, d in enumerate(shape) if d in ragged), None)
                own = feeds[name] if axis is None else np.moveaxis(feeds[name], axis, 1)[0]
                inputs.setdefault(name, []).append(own)
            expected.append([np.asarray(y) for y in evaluator.run(None, feeds)])
        whole = {name: np.concatenate(parts) for name, parts in inputs.items()}
        for name in ragged:
            whole[f"{name}_offsets"] = np.cumsum([0, *(row[name] for row in rows)])
        actual = interpreter.run(program, whole)
        for position, have in enumerate(actual):
            # What has the points of a row along its second axis lies without the first one.
            parts = [e[position] for e in expected]
            want = np.concatenate([p[0] if p.ndim > have.ndim else p for p in parts])
            assert have.shape == want.shape
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


_SIZES = [
    [{"P": 3}, {"P": 7}, {"P": 4}, {"P": 4}],
    [{"P": 5}],
    [{"P": 2}, {"P": 9}, {"P": 2}],
]
_W = np.random.default_rng(1).normal(size=(5, 3, 1)).astype(np.float32)
_LAST = np.array([-1], np.int64)

_TAKEN: dict[str, onnx.ModelProto] = {
    "points": _model(
        [
            _node("Conv", "x w", "c"),
            _node("Relu", "c", "r"),
            _node("ReduceSum", "r last", keepdims=0),
        ],
        {"x": ["N", 3, "P"]},
        {"w": _W, "last": _LAST},
    ),
    "mean": _model(
        [_node("ReduceMean", "x last", keepdims=0)], {"x": ["N", 3, "P"]}, {"last": _LAST}
    ),
    "largest": _model(
        [
            _node("ReduceMax", "x last", "m", keepdims=0),
            _node("ReduceMin", "x last", "n", keepdims=0),
            _node("Sub", "m n"),
        ],
        {"x": ["N", 3, "P"]},
        {"last": _LAST},
    ),
    "centred": _model(
        [
            _node("ReduceMean", "x last", "m", keepdims=1),
            _node("Sub", "x m", "d"),
            _node("Transpose", "d", perm=[0, 2, 1]),
        ],
        {"x": ["N", 3, "P"]},
        {"last": _LAST},
    ),
    "each_point": _model(
        [_node("MatMul", "x w", "h"), _node("Add", "h z")],
        {"x": ["N", "P", 3], "z": ["N", 1, 5]},
        {"w": _W[:, :, 0].T.copy()},
    ),
    "products": _model(
        [
            _node("Transpose", "x", "t", perm=[0, 2, 1]),
            _node("MatMul", "t x", "p"),
            _node("TopK", "p k", "y i", axis=-1),
        ],
        {"x": ["N", 8, "P"]},
        {"k": np.array([2], np.int64)},
    ),
    "covariance": _model(
        [_node("Transpose", "x", "t", perm=[0, 2, 1]), _node("MatMul", "x t")],
        {"x": ["N", 3, "P"]},
    ),
    "softmax": _model([_node("Softmax", "x", axis=2)], {"x": ["N", "P", 3]}),
    "matrices": _model(
        [
            _node("MatMul", "x z", "m"),
            _node("ReduceMax", "m last", "n", keepdims=0),
            _node("Relu", "n"),
        ],
        {"x": ["N", "P", 4], "z": ["N", 4, "P"]},
        {"last": _LAST},
    ),
    "summed_over_points": _model(
        [_node("MatMul", "x z", "m"), _node("Relu", "m")],
        {"x": ["N", 4, "P"], "z": ["N", "P", 5]},
    ),
    "windows": _model(
        [_node("Conv", "x w3", "c", pads=[1, 1]), _node("Transpose", "c", perm=[0, 2, 1])],
        {"x": ["N", 3, "P"]},
        {"w3": np.random.default_rng(2).normal(size=(4, 3, 3)).astype(np.float32)},
    ),
    "global_pool": _model(
        [_node("GlobalAveragePool", "x", "p"), _node("Flatten", "p")], {"x": ["N", 3, "P"]}
    ),
    "norm": _model(
        [_node("Transpose", "x", "t", perm=[0, 2, 1]), _node("LayerNormalization", "t g")],
        {"x": ["N", 3, "P"]},
        {"g": np.ones(3, np.float32)},
    ),
    "reversed": _model(
        [_node("Slice", "x s e a t", "f"), _node("Transpose", "f", perm=[0, 2, 1])],
        {"x": ["N", 3, "P"]},
        {
            "s": np.array([-1]),
            "e": np.array([-(2**62)]),
            "a": np.array([2]),
            "t": np.array([-1]),
        },
    ),
    "every_other": _model(
        [_node("Slice", "x s e a t", "f"), _node("ReduceSum", "f a", keepdims=0)],
        {"x": ["N", 3, "P"]},
        {"s": np.array([0]), "e": np.array([2**62]), "a": np.array([2]), "t": np.array([2])},
    ),
    "flattened": _model(
        [
            _node("Reshape", "x s", "f"),
            _node("Relu", "f", "r"),
            _node("ReduceSum", "r a", keepdims=0),
        ],
        {"x": ["N", 3, "P"]},
        {"s": np.array([0, -1]), "a": np.array([1])},
    ),
    "joined": _model(
        [_node("Concat", "x z", "j", axis=2), _node("ReduceSum", "j last", keepdims=0)],
        {"x": ["N", 3, "P"], "z": ["N", 3, 2]},
        {"last": _LAST},
    ),
}


@pytest.mark.parametrize("name", _TAKEN)
def test_as_if_alone(name: str, tmp_path: pathlib.Path) -> None:
    _hold(_TAKEN[name], _lower(_TAKEN[name], ["P"], tmp_path), _SIZES)


def test_two_sizes(tmp_path: pathlib.Path) -> None:
    model = _model(
        [
            _node("Concat", "x z", "j", axis=2),
            _node("Conv", "j w", "c"),
            _node("ReduceMean", "c last", "m", keepdims=1),
            _node("Sub", "c m", "d"),
            _node("Abs", "d", "a"),
            _node("ReduceMax", "a last", keepdims=0),
        ],
        {"x": ["N", 3, "P"], "z": ["N", 3, "Q"]},
        {"w": _W, "last": _LAST},
    )
    sizes = [[{"P": 3, "Q": 2}, {"P": 1, "Q": 0}, {"P": 0, "Q": 4}], [{"P": 2, "Q": 2}]]
    _hold(model, _lower(model, ["P", "Q"], tmp_path), sizes)
    # One of them may be the same for all rows.
    same = [[{"P": 3, "Q": 2}, {"P": 1, "Q": 2}]]
    _hold(model, _lower(model, ["P"], tmp_path), same)


def test_particle_net(tmp_path: pathlib.Path) -> None:
    model = onnx.load(str(_PARTICLE_NET))
    program = _lower(model, ["n_pf", "n_sv"], tmp_path)
    rows = [(20, 3), (35, 0), (17, 0), (18, 7), (40, 1)]
    cases = [[{"n_pf": pf, "n_sv": sv} for pf, sv in rows], [{"n_pf": 30, "n_sv": 2}]]
    _hold(model, program, cases, masks=("pf_mask", "sv_mask"))
    # Every row has to have its 17 points.
    assert any(r.low == 17 for r in program.row_requirements)


def test_no_rows(tmp_path: pathlib.Path) -> None:
    model = onnx.load(str(_PARTICLE_NET))
    program = _lower(model, ["n_pf", "n_sv"], tmp_path)
    inputs = {
        b.name: np.zeros([0 if d.is_Symbol else int(d) for d in b.shape], np.float32)
        for b in program.inputs[:6]
    }
    offsets = {f"{kind}_offsets": np.zeros(1, np.int64) for kind in ("n_pf", "n_sv")}
    assert interpreter.run(program, {**inputs, **offsets})[0].shape == (0, 8)


_REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "rows_that_meet": (
        _model(
            [_node("ReduceSum", "x a", keepdims=0)],
            {"x": ["N", 3, "P"]},
            {"a": np.array([0], np.int64)},
        ),
        "ragged: rows may meet: node 'ReduceSum' (ReduceSum) reduces over rows",
    ),
    "softmax_of_points": (
        _model([_node("Softmax", "x", axis=2)], {"x": ["N", 3, "P"]}),
        "ragged: Softmax: it normalises what rows have in different numbers",
    ),
    "rows_inside": (
        _model(
            [
                _node("Transpose", "x", "t", perm=[2, 0, 1]),
                _node("Reshape", "t s", "f"),
                _node("MatMul", "f w", "m"),
                _node("Shape", "t", "extents", start=0, end=2),
                _node("Concat", "extents two", "back", axis=0),
                _node("Reshape", "m back", "b"),
                _node("Transpose", "b", perm=[1, 0, 2]),
            ],
            {"x": ["N", 3, "P"]},
            {"s": np.array([-1, 3]), "w": np.ones((3, 2), np.float32), "two": np.array([2])},
        ),
        "ragged: MatMul: rows are not outermost in the memory of 'MatMul'",
    ),
    "joined_rows": (
        _model([_node("Reshape", "x s")], {"x": ["N", "P"]}, {"s": np.array([-1])}),
        "ragged: output 'y' has to have the rows along its first axis, and one of the sizes that "
        "are ragged along its second one",
    ),
    "all_pairs": (
        _model(
            [
                _node("Unsqueeze", "x two", "u"),
                _node("Unsqueeze", "x one", "v"),
                _node("Sub", "u v", "d"),
                _node("Mul", "d d", "q"),
                _node("ReduceSum", "q last", keepdims=0),
            ],
            {"x": ["N", "P"]},
            {"two": np.array([2]), "one": np.array([1]), "last": _LAST},
        ),
        "ragged: Sub: it goes over two sizes of a row at once",
    ),
    "places": (
        _model(
            [_node("ArgMax", "x", "i", axis=2, keepdims=0), _node("Cast", "i", to=1)],
            {"x": ["N", 3, "P"]},
        ),
        "ArgMax over rows with sizes of their own",
    ),
    "running": (
        _model([_node("CumSum", "x a")], {"x": ["N", 3, "P"]}, {"a": np.array(2, np.int64)}),
        "can't take rows with sizes of their own",
    ),
    "channels_first": (
        _model([_node("Relu", "x")], {"x": ["N", 3, "P"]}),
        "ragged: output 'y' has to have the rows along its first axis, and one of the sizes that "
        "are ragged along its second one",
    ),
    "matrices": (
        _model(
            [_node("Transpose", "x", "t", perm=[0, 2, 1]), _node("MatMul", "t x")],
            {"x": ["N", 3, "P"]},
        ),
        "ragged: output 'y' has to have the rows along its first axis",
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    model, message = _REFUSED[name]
    with pytest.raises(ModelError) as error:
        _lower(model, ["P"], tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "sizes, message",
    [
        (["Q"], "ragged names 'Q', which is no size of the inputs; it has N, P"),
        (["N"], "ragged names 'N', which counts the rows"),
    ],
)
def test_names(sizes: list[str], message: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ModelError) as error:
        _lower(_TAKEN["points"], sizes, tmp_path)
    assert message in str(error.value)
