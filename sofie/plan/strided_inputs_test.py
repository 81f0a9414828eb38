"""Inputs that are views: one program reads them with any strides, as NumPy does."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.ir.program import Pointwise, Program
from sofie.passes import pipeline
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, graph, import_model

# Views of a shape, made of fresh numbers.
_VIEWS: dict[str, Callable[[Array, tuple[int, ...]], Array]] = {
    "packed": lambda pool, shape: _take(pool, shape),
    "transposed": lambda pool, shape: _take(pool, shape[::-1]).T,
    "padded": lambda pool, shape: _take(pool, tuple(d + 3 for d in shape))[
        tuple(slice(1, d + 1) for d in shape)
    ],
    "sliced": lambda pool, shape: _take(pool, tuple(2 * d for d in shape))[
        tuple(slice(None, None, 2) for _ in shape)
    ],
    "repeated": lambda pool, shape: np.broadcast_to(_take(pool, shape[-1:]), shape),
    "rows_repeated": lambda pool, shape: np.broadcast_to(_take(pool, (*shape[:-1], 1)), shape),
    "overlapping": lambda pool, shape: np.lib.stride_tricks.as_strided(
        pool, shape, [pool.itemsize] * len(shape)
    ),
}
_SIZES = [(2, 5), (1, 1), (0, 4), (4, 3), (7, 2), (3, 0)]


def _take(pool: Array, shape: tuple[int, ...]) -> Array:
    return pool[: np.prod(shape, dtype=int)].reshape(shape)


def _compile(proto: onnx.ModelProto, strided: tuple[str, ...] = ("x",)) -> Program:
    model = import_model(proto)
    check(model)
    pipeline.run(model)
    return lower(model, strided_inputs=strided)


def _constant(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


_X: dict[str, tuple[str, Dims]] = {"x": ("float32", ["N", 3, "P"])}
_MODELS = {
    "elementwise": graph(
        [
            helper.make_node("Mul", ["x", "x"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["y"]),
        ],
        _X,
        {"y": "float32"},
        {"b": _constant(3, 1)},
    ),
    "identity": graph([helper.make_node("Identity", ["x"], ["y"])], _X, {"y": "float32"}),
    "transpose_reshape": graph(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
            helper.make_node("Reshape", ["t", "shape"], ["y"]),
        ],
        _X,
        {"y": "float32"},
        {"shape": np.array([-1])},
    ),
    "sum_last": graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"])],
        _X,
        {"y": "float32"},
        {"axes": np.array([2])},
    ),
    "max_first": graph(
        [helper.make_node("ReduceSumSquare", ["x", "axes"], ["y"])],
        _X,
        {"y": "float32"},
        {"axes": np.array([0])},
    ),
    "softmax": graph([helper.make_node("Softmax", ["x"], ["y"], axis=1)], _X, {"y": "float32"}),
    "slice_concat": graph(
        [
            helper.make_node("Slice", ["x", "begin", "end", "axes"], ["s"]),
            helper.make_node("Concat", ["s", "x"], ["y"], axis=1),
        ],
        _X,
        {"y": "float32"},
        {"begin": np.array([1]), "end": np.array([3]), "axes": np.array([1])},
    ),
    "matmul": graph(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["t", "w"], ["y"]),
        ],
        _X,
        {"y": "float32"},
        {"w": _constant(3, 4)},
    ),
    "product_with_itself": graph(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["x", "t"], ["y"]),
        ],
        _X,
        {"y": "float32"},
    ),
    "convolution": graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1])],
        _X,
        {"y": "float32"},
        {"w": _constant(4, 3, 3)},
    ),
    "gather": graph(
        [helper.make_node("Gather", ["x", "indices"], ["y"], axis=1)],
        _X,
        {"y": "float32"},
        {"indices": np.array([2, 0, 0])},
    ),
    "topk": graph(
        [helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=1)],
        _X,
        {"y": "float32", "i": "int64"},
        {"k": np.array([2])},
    ),
    "attention": graph(
        [helper.make_node("Attention", ["x", "x", "x"], ["y"])],
        {"x": ("float32", ["N", 3, "P", 4])},
        {"y": "float32"},
        opset=23,
    ),
}


@pytest.mark.parametrize("name", _MODELS)
def test_views(name: str) -> None:
    """Every view at every size, one program."""
    program = _compile(_MODELS[name])
    reference = ReferenceEvaluator(_MODELS[name])
    rng = np.random.default_rng(5)
    for n, p in _SIZES:
        for kind, view in _VIEWS.items():
            if name in ("convolution", "attention") and p == 0:
                continue  # The reference refuses it.
            shape = (n, 3, p, 4) if name == "attention" else (n, 3, p)
            x = view(rng.standard_normal(4000).astype(np.float32), shape)
            assert x.shape == shape
            expected = reference.run(None, {"x": np.ascontiguousarray(x)})
            actual = interpreter.run(program, {"x": x})
            for ours, theirs in zip(actual, expected, strict=True):
                np.testing.assert_allclose(
                    ours, theirs, rtol=1e-5, atol=1e-5, err_msg=f"{kind} {n} {p}"
                )


@pytest.mark.parametrize("kind", _VIEWS)
def test_a_column_as_a_matrix(kind: str) -> None:
    """Rows may be 0 elements apart, which libraries don't take."""
    proto = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": ("float32", ["N", 1])},
        {"y": "float32"},
        {"w": _constant(1, 5)},
    )
    program = _compile(proto)
    for n in (3, 1, 0, 6):
        x = _VIEWS[kind](np.arange(100, dtype=np.float32), (n, 1))
        [y] = interpreter.run(program, {"x": x})
        np.testing.assert_allclose(y, x @ _constant(1, 5), rtol=1e-6)


def test_two_inputs_have_strides_of_their_own() -> None:
    nodes = [helper.make_node("Sub", ["x", "z"], ["y"])]
    inputs: dict[str, tuple[str, Dims]] = {"x": ("int32", ["N", "P"]), "z": ("int32", ["N", "P"])}
    program = _compile(graph(nodes, inputs, {"y": "int32"}), ("z", "x"))
    a = np.arange(40, dtype=np.int32).reshape(5, 8)
    [y] = interpreter.run(program, {"x": a[:, 1::2], "z": a[:4, :5].T})
    np.testing.assert_array_equal(y, a[:, 1::2] - a[:4, :5].T)


def test_no_kernel_copies_a_view() -> None:
    """What reads a packed input in one kernel reads a view in one, along its last axis."""
    for name in ("elementwise", "sum_last", "softmax", "gather"):
        steps = _compile(_MODELS[name]).steps
        packed = _compile(_MODELS[name], ()).steps
        assert [type(s) for s in steps] == [type(s) for s in packed]
        assert len(steps) == 1
    [step] = _compile(_MODELS["elementwise"]).steps
    assert isinstance(step, Pointwise)
    assert [str(loop.extent) for loop in step.loops] == ["s0", "3", "s1"]


def test_scalars_have_no_strides() -> None:
    proto = graph([helper.make_node("Neg", ["x"], ["y"])], {"x": ("float32", [])}, {"y": "float32"})
    [y] = interpreter.run(_compile(proto), {"x": np.array(3, np.float32)})
    assert y == -3


def test_inputs_that_can_have_no_strides() -> None:
    identity = [helper.make_node("Identity", ["x"], ["y"])]
    proto = graph(identity, {"x": ("float32", ["N"])}, {"y": "float32"})
    with pytest.raises(ModelError, match="names 'z', which is no input of the model; it has 'x'"):
        _compile(proto, ("z",))
    four_bits = graph(identity, {"x": ("int4", ["N"])}, {"y": "int4"})
    with pytest.raises(ModelError, match="elements of the input 'x' share bytes"):
        _compile(four_bits)
    repeats = graph(
        [helper.make_node("Expand", ["v", "x"], ["y"])],
        {"v": ("float32", [1]), "x": ("int64", [2])},
        {"y": "float32"},
    )
    with pytest.raises(ModelError, match="sizes depend on elements of the input 'x'"):
        _compile(repeats)
