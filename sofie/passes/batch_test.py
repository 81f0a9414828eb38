"""What is proved of batches holds in ONNX's reference evaluator, and where rows meet is named."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sofie.importer.load import load
from sofie.passes import batch
from sofie.testing.operators import Array, Dims, graph

_MODELS = pathlib.Path(__file__).parents[2] / "models"


def _node(op_type: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op_type, names, outputs.split(), name=op_type, **attributes)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Dims],
    constants: dict[str, Array] | None = None,
    outputs: dict[str, str] | None = None,
    dtypes: dict[str, str] | None = None,
) -> onnx.ModelProto:
    dtypes = dtypes or {}
    typed = {name: (dtypes.get(name, "float32"), shape) for name, shape in inputs.items()}
    return graph(nodes, typed, outputs or {"y": "float32"}, constants or {})


def _find(model: onnx.ModelProto, folder: pathlib.Path) -> batch.Batch:
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    return batch.find(load(path))


def _feeds(model: onnx.ModelProto, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value or sizes[d.dim_param] for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        random = generator.integers(0, 2, shape) if dtype.kind in "iub" else 0
        normal = generator.normal(size=shape) if dtype.kind == "f" else random
        feeds[value.name] = np.asarray(normal).astype(dtype)
    return feeds


def _rows(array: np.ndarray, rows: int, first: int, last: int) -> np.ndarray:
    each = array.shape[0] // rows
    return array[first * each : last * each]


def _expect_apart(model: onnx.ModelProto, sizes: dict[str, int]) -> None:
    """Rows 0 and 1 to 4 by themselves give what all five give together."""
    rows = 5
    evaluator = ReferenceEvaluator(model)
    feeds = _feeds(model, {**sizes, "N": rows})
    with_rows = {
        value.name
        for value in model.graph.input
        if value.type.tensor_type.shape.dim[0].dim_param == "N"
    }
    whole = evaluator.run(None, feeds)
    for first, last in ((0, 1), (1, 5)):
        cut = {
            name: _rows(array, rows, first, last) if name in with_rows else array
            for name, array in feeds.items()
        }
        for one, all_rows in zip(evaluator.run(None, cut), whole, strict=True):
            expected = _rows(all_rows, rows, first, last)
            np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


_INT64_MAX = np.iinfo(np.int64).max
_X: dict[str, Dims] = {"x": ["N", 3, "P"]}


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


_KNN = [
    _node("TopK", "x k", "v i", axis=2),
    _node("Shape", "x", "shape"),
    _node("Gather", "shape zero", "rows"),
    _node("Gather", "shape two", "points"),
    _node("Range", "zero rows one", "numbers"),
    _node("Reshape", "numbers column", "first"),
    _node("Mul", "first points", "starts"),
    _node("Add", "i starts", "places"),
    _node("Reshape", "places flat", "indices"),
    _node("Transpose", "x", "table3", perm=[0, 2, 1]),
    _node("Reshape", "table3 table_shape", "table"),
    _node("Gather", "table indices"),
]
_KNN_CONSTANTS: dict[str, Array] = {
    "k": _ints(2),
    "zero": np.array(0, np.int64),
    "one": np.array(1, np.int64),
    "two": np.array(2, np.int64),
    "column": _ints(-1, 1, 1),
    "flat": _ints(-1),
    "table_shape": _ints(-1, 3),
}

_APART: dict[str, onnx.ModelProto] = {
    "reduce": _model([_node("ReduceSum", "x a", keepdims=0)], _X, {"a": _ints(1)}),
    "reduce_moves_the_axis": _model(
        [
            _node("Transpose", "x", "t", perm=[2, 1, 0]),
            _node("ReduceSum", "t a", "r", keepdims=0),
            _node("Transpose", "r", perm=[1, 0]),
        ],
        _X,
        {"a": _ints(0)},
    ),
    "flattened": _model(
        [_node("Reshape", "x s", "f"), _node("MatMul", "f w", "m"), _node("Reshape", "m back")],
        {"x": ["N", "P", 3]},
        {"s": _ints(-1, 3), "w": np.ones((3, 2), np.float32), "back": _ints(-1, 2)},
    ),
    "rounds": _model(
        [
            _node("Transpose", "x", "t", perm=[2, 0, 1]),
            _node("Reshape", "t s", "f"),
            _node("MatMul", "f w", "m"),
            _node("Shape", "t", "shape", start=0, end=2),
            _node("Concat", "shape two", "back_shape", axis=0),
            _node("Reshape", "m back_shape", "back"),
            _node("Transpose", "back", perm=[1, 0, 2]),
        ],
        _X,
        {"s": _ints(-1, 3), "w": np.ones((3, 2), np.float32), "two": _ints(2)},
    ),
    "neighbours": _model(_KNN, _X, _KNN_CONSTANTS),
    "products": _model([_node("Transpose", "x", "t", perm=[0, 2, 1]), _node("MatMul", "t x")], _X),
    "shared": _model(
        [_node("MatMul", "x w", "m"), _node("Add", "m b")],
        {"x": ["N", 3], "w": [3, "C"], "b": ["C"]},
    ),
    "lookup": _model(
        [_node("Gather", "table x")],
        {"x": ["N", 3], "table": [2, "C"]},
        dtypes={"x": "int64"},
    ),
    "whole_slice": _model(
        [_node("Slice", "x s e a")],
        _X,
        {"s": _ints(0, 1), "e": _ints(_INT64_MAX, 3), "a": _ints(0, 1)},
    ),
    "pad": _model([_node("Pad", "x p")], _X, {"p": _ints(0, 1, 0, 0, 0, 2)}),
    "expand": _model(
        [
            _node("Shape", "x", "s"),
            _node("Expand", "token s", "tokens"),
            _node("Concat", "x tokens", axis=2),
        ],
        _X,
        {"token": np.ones((1, 3, 1), np.float32)},
    ),
    "one_token": _model(
        [
            _node("Shape", "x", "n", start=0, end=1),
            _node("Concat", "n rest", "s", axis=0),
            _node("Expand", "token s", "tokens"),
            _node("Concat", "x tokens", axis=2),
        ],
        _X,
        {"token": np.ones((1, 3, 1), np.float32), "rest": _ints(3, 1)},
    ),
    "convolution": _model(
        [_node("Conv", "x w", "c", pads=[1, 1]), _node("MaxPool", "c", kernel_shape=[2])],
        _X,
        {"w": np.ones((4, 3, 3), np.float32)},
    ),
    "softmax": _model([_node("Softmax", "x", axis=1)], _X),
    "recurrent": _model(
        [
            _node("Transpose", "x", "t", perm=[2, 0, 1]),
            _node("GRU", "t w r", "- h", hidden_size=2),
            _node("Transpose", "h", perm=[1, 0, 2]),
        ],
        _X,
        {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)},
    ),
    "einsum": _model([_node("Einsum", "x z", equation="ncp,ncq->npq")], {**_X, "z": ["N", 3, "Q"]}),
    "one_hot": _model(
        [_node("OneHot", "x d v", axis=1)],
        {"x": ["N", "P"]},
        {"d": np.array(2, np.int64), "v": np.array([0, 1], np.float32)},
        dtypes={"x": "int64"},
    ),
    "elements": _model(
        [_node("GatherElements", "x i", axis=1)],
        {"x": ["N", 3], "i": ["N", 4]},
        dtypes={"i": "int64"},
    ),
}


@pytest.mark.parametrize("name", _APART)
def test_rows_that_do_not_meet(name: str, tmp_path: pathlib.Path) -> None:
    assert _find(_APART[name], tmp_path) == batch.Batch(0, None)
    _expect_apart(_APART[name], {"P": 4, "Q": 3, "C": 2})


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("particle_net", {"n_pf": 18, "n_sv": 3}),
        ("particle_transformer", {"P": 6}),
        ("transformer", {"L": 5}),
        ("mlpf", {"E": 4}),
        ("vae", {}),
        ("cnn", {}),
        ("unet", {"L": 16}),
        ("lstm_tagger", {"L": 4}),
    ],
)
def test_models(name: str, sizes: dict[str, int]) -> None:
    path = _MODELS / f"{name}.onnx"
    assert batch.find(load(path)) == batch.Batch(0, None)
    _expect_apart(onnx.load(str(path)), sizes)


def _changed(constants: dict[str, Array]) -> onnx.ModelProto:
    return _model(_KNN, _X, {**_KNN_CONSTANTS, **constants})


_MEET: dict[str, tuple[onnx.ModelProto, str]] = {
    "sum": (
        _model([_node("ReduceSum", "x a", keepdims=0)], _X, {"a": _ints(0)}),
        "node 'ReduceSum' (ReduceSum) reduces over rows",
    ),
    "sum_of_all": (
        _model([_node("ReduceMean", "x", "m"), _node("Sub", "x m")], _X),
        "node 'ReduceMean' (ReduceMean) reduces over rows",
    ),
    "softmax": (
        _model([_node("Softmax", "x", axis=0)], _X),
        "node 'Softmax' (Softmax) normalises over rows",
    ),
    "running": (
        _model([_node("CumSum", "x a")], _X, {"a": np.array(0, np.int64)}),
        "node 'CumSum' (CumSum) works along the rows",
    ),
    "slice": (
        _model([_node("Slice", "x s e")], _X, {"s": _ints(1), "e": _ints(_INT64_MAX)}),
        "node 'Slice' (Slice) slices the rows",
    ),
    "reversed": (
        _model(
            [_node("Slice", "x s e a t")],
            _X,
            {"s": _ints(-1), "e": _ints(-_INT64_MAX), "a": _ints(0), "t": _ints(-1)},
        ),
        "node 'Slice' (Slice) slices the rows",
    ),
    "twice": (
        _model([_node("Concat", "x x", axis=0)], _X),
        "node 'Concat' (Concat) joins along the rows",
    ),
    "how_many": (
        _model(
            [
                _node("Shape", "x", "n", start=0, end=1),
                _node("Cast", "n", "count", to=1),
                _node("Div", "x count"),
            ],
            _X,
        ),
        "node 'Div' (Div) depends on how many there are",
    ),
    "how_many_spread": (
        _model(
            [
                _node("Shape", "x", "n", start=0, end=1),
                _node("Expand", "n n", "counts"),
            ],
            _X,
            outputs={"counts": "int64"},
        ),
        "node 'Expand' (Expand) depends on how many there are",
    ),
    "numbers": (
        _model(_KNN[1:6], _X, _KNN_CONSTANTS, outputs={"first": "int64"}),
        "output 'first' depends on the numbers of rows",
    ),
    "last_row": (
        _model([_node("Gather", "x last", axis=0)], {"x": ["N", 3]}, {"last": _ints(-1)}),
        "node 'Gather' (Gather) gathers rows by indices",
    ),
    "neighbours_of_another_row": (
        _model(
            [
                *_KNN[:7],
                _node("Add", "i starts", "own"),
                _node("Add", "own one", "places"),
                *_KNN[8:],
            ],
            _X,
            _KNN_CONSTANTS,
        ),
        "node 'Gather' (Gather) may gather from other rows: its indices are not seen to stay in "
        "theirs",
    ),
    "table_of_other_rows": (
        _changed({"table_shape": _ints(-1, 1)}),
        "node 'Gather' (Gather) gathers rows by indices",
    ),
    "aligned_with_another_axis": (
        _model([_node("Transpose", "x", "t"), _node("MatMul", "x t")], {"x": ["N", 3]}),
        "node 'MatMul' (MatMul) multiplies rows with each other",
    ),
    "split_rows": (
        _model([_node("Reshape", "x s")], {"x": ["N", 4]}, {"s": _ints(4, -1)}),
        "node 'Reshape' (Reshape) does not keep the rows apart",
    ),
    "no_rows": (
        _model([_node("Transpose", "x", perm=[1, 0])], {"x": ["N", 4]}),
        "output 'y' has no rows along its first axis",
    ),
    "shared_output": (
        _model(
            [_node("Relu", "x"), _node("Abs", "w", "z")],
            {"x": ["N", 4], "w": [3]},
            outputs={"y": "float32", "z": "float32"},
        ),
        "output 'z' has no rows along its first axis",
    ),
    "two_axes": (
        _model([_node("Relu", "x")], {"x": ["N", "N"]}),
        "input 'x' has N along another axis than the first",
    ),
    "places": (
        _model(
            [_node("MaxPool", "x", "y i", kernel_shape=[2])],
            _X,
            outputs={"y": "float32", "i": "int64"},
        ),
        "node 'MaxPool' (MaxPool) gives places in all rows",
    ),
    "random": (
        _model([_node("RandomNormalLike", "x")], _X),
        "node 'RandomNormalLike' (RandomNormalLike) draws random numbers",
    ),
    "found": (
        _model([_node("NonZero", "x")], _X, outputs={"y": "int64"}),
        "node 'NonZero' (NonZero) may mix them: nothing is known of what it does with rows",
    ),
    "unknown": (
        _model(
            [_node("MaxUnpool", "x i", kernel_shape=[2])],
            {**_X, "i": ["N", 3, "P"]},
            dtypes={"i": "int64"},
        ),
        "node 'MaxUnpool' (MaxUnpool) may mix them: nothing is known of what it does with rows",
    ),
}


@pytest.mark.parametrize("name", _MEET)
def test_where_rows_meet(name: str, tmp_path: pathlib.Path) -> None:
    model, refusal = _MEET[name]
    assert _find(model, tmp_path) == batch.Batch(0, refusal)


def test_no_rows(tmp_path: pathlib.Path) -> None:
    model = _model([_node("Relu", "x")], {"x": [4, "N"]})
    found = _find(model, tmp_path)
    assert found.symbol is None
    assert found.refusal == "no first axis of an input has a symbolic extent"


def test_what_no_output_needs_does_not_matter(tmp_path: pathlib.Path) -> None:
    nodes = [_node("ReduceSum", "x", "unused"), _node("Relu", "x")]
    assert _find(_model(nodes, _X), tmp_path) == batch.Batch(0, None)


def test_indices_of_weights(tmp_path: pathlib.Path) -> None:
    """A constant table of neighbours: its largest index counts."""
    for most, refusal in ((3, None), (4, "may gather from other rows")):
        nodes = [*_KNN[1:7], _node("Add", "table_i starts", "places"), *_KNN[8:]]
        inputs: dict[str, Dims] = {"x": ["N", 3, 4]}
        constants = {**_KNN_CONSTANTS, "table_i": np.array([[[0, most]]], np.int64)}
        found = _find(_model(nodes, inputs, constants), tmp_path)
        if refusal is None:
            assert found == batch.Batch(0, None)
        else:
            assert refusal in (found.refusal or "")
