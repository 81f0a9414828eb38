"""Products of two matrices of a lower rank in the place of constant ones."""

import math

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.check import check
from sofie.ir.program import Gemm, Program
from sofie.passes import pipeline
from sofie.passes.reduce_rank import LowRank, Reduced
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, graph, import_model

_K, _N = 24, 32
_CASES = [{"M": 5, "P": 3}, {"M": 1, "P": 1}, {"M": 0, "P": 4}, {"M": 7, "P": 2}]


def _matrix(rank: int, noise: float, kind: str = "float32") -> Array:
    """Of a rank, but for noise whose norm is that share of the whole."""
    rng = np.random.default_rng(7)
    whole = rng.standard_normal((_K, rank)) @ rng.standard_normal((rank, _N))
    rest = rng.standard_normal((_K, _N))
    return (whole + noise * np.linalg.norm(whole) / np.linalg.norm(rest) * rest).astype(kind)


def _compile(proto: onnx.ModelProto, low_rank: str = "") -> tuple[Program, tuple[Reduced, ...]]:
    model = import_model(proto)
    check(model)
    reduced = pipeline.run(model, LowRank.parse(low_rank) if low_rank else None)
    return lower(model), reduced


def _products(program: Program) -> list[tuple[int, int]]:
    return [(int(s.k), int(s.n)) for s in program.steps if isinstance(s, Gemm)]


def _matmul(weight: Array) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")]
    kind = weight.dtype.name
    return graph(nodes, {"x": (kind, ["M", _K])}, {"y": kind}, {"w": weight})


def test_off_leaves_the_model_alone() -> None:
    program, reduced = _compile(_matmul(_matrix(4, 0)))
    assert _products(program) == [(_K, _N)]
    assert reduced == ()


@pytest.mark.parametrize("limit", [0.3, 0.1, 1e-2, 1e-3])
def test_the_error_is_bound(limit: float) -> None:
    """Of the matrix, and of the result for any row; with a rank less, the error would be larger."""
    weight = (
        np.random.default_rng(1).standard_normal((_K, _N)) @ np.diag(10.0 ** -np.arange(_N))
    ).astype(np.float32)
    program, [reduced] = _compile(_matmul(weight), f"error={limit}")
    assert (reduced.weight, reduced.nodes, reduced.shape) == ("w", ("dense",), (_K, _N))
    assert 0 < reduced.error <= limit
    singular = np.linalg.svd(weight.astype(np.float64), compute_uv=False)
    norm = np.linalg.norm(singular)
    assert np.linalg.norm(singular[reduced.rank :]) / norm == pytest.approx(reduced.error, rel=1e-3)
    assert np.linalg.norm(singular[reduced.rank - 1 :]) / norm > limit
    assert _products(program) == [(_K, reduced.rank), (reduced.rank, _N)]
    x = np.random.default_rng(2).standard_normal((50, _K)).astype(np.float32)
    [y] = interpreter.run(program, {"x": x})
    differences = np.linalg.norm(y - x.astype(np.float64) @ weight, axis=1)
    assert np.all(differences <= (limit * norm + 1e-6) * np.linalg.norm(x, axis=1))
    assert differences.max() > 0


@pytest.mark.parametrize("ratio", [0.9, 0.5, 0.1])
def test_the_ratio_is_kept(ratio: float) -> None:
    program, [reduced] = _compile(_matmul(_matrix(_K, 0)), f"ratio={ratio}")
    assert reduced.rank * (_K + _N) <= ratio * _K * _N < (reduced.rank + 1) * (_K + _N)
    assert _products(program) == [(_K, reduced.rank), (reduced.rank, _N)]


def test_what_would_save_nothing_is_left_alone() -> None:
    """At full rank, and where one row of factors is more than the matrix."""
    assert _compile(_matmul(_matrix(_K, 0)), "error=1e-3")[1] == ()
    assert _compile(_matmul(_matrix(_K, 0)), "ratio=0.05")[1] == ()
    assert _compile(_matmul(_matrix(1, 0)[:, :1]), "error=0.5")[1] == ()


def test_an_error_below_rounding_is_not_promised() -> None:
    """A matrix of rank 4 in float16 is no product of float16 factors up to 1e-6."""
    assert _compile(_matmul(_matrix(4, 0, "float16")), "error=1e-6")[1] == ()
    [reduced] = _compile(_matmul(_matrix(4, 0, "float16")), "error=1e-2")[1]
    assert reduced.rank == 4
    assert 1e-5 < reduced.error <= 1e-2


def test_zeros_and_numbers_that_are_none() -> None:
    [reduced] = _compile(_matmul(np.zeros((_K, _N), np.float32)), "error=1e-3")[1]
    assert (reduced.rank, reduced.error) == (1, 0.0)
    for number in (np.nan, np.inf):
        weight = _matrix(2, 0)
        weight[3, 4] = number
        assert _compile(_matmul(weight), "ratio=0.5")[1] == ()


_OPERATORS: dict[str, tuple[list[onnx.NodeProto], dict[str, tuple[str, Dims]]]] = {
    "matmul": (
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": ("float32", ["M", 2, _K])},
    ),
    "vector": ([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("float32", [_K])}),
    "gemm": (
        [
            helper.make_node("Gemm", ["x", "w", "bias"], ["g"], alpha=0.5, beta=2.0, transA=1),
            helper.make_node("Relu", ["g"], ["y"]),
        ],
        {"x": ("float32", [_K, "M"])},
    ),
    "gemm_transposed": (
        [helper.make_node("Gemm", ["x", "wt", "bias"], ["y"], transB=1)],
        {"x": ("float32", ["M", _K])},
    ),
    "conv": (
        [
            helper.make_node("Conv", ["x", "kernel", "bias"], ["c"], kernel_shape=[1, 1]),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        {"x": ("float32", ["M", _K, "P", 3])},
    ),
    "conv_with_a_border": (
        [helper.make_node("Conv", ["x", "kernel", "bias"], ["y"], pads=[1] * 4, strides=[2, 2])],
        {"x": ("float32", ["M", _K, "P", 3])},
    ),
}


@pytest.mark.parametrize("name", _OPERATORS)
def test_results(name: str) -> None:
    """As those of the model as it is, where the rank is no lower than that of the matrix."""
    nodes, inputs = _OPERATORS[name]
    weight = _matrix(3, 0)
    constants = {
        "w": weight,
        "wt": weight.T.copy(),
        "kernel": weight.T.reshape(_N, _K, 1, 1).copy(),
        "bias": np.linspace(-3, 3, _N).astype(np.float32),
    }
    proto = graph(nodes, inputs, {"y": "float32"}, constants)
    program, [reduced] = _compile(proto, "error=1e-5")
    assert reduced.rank == 3
    assert reduced.shape == (_K, _N)
    before = _compile(proto)[0]
    for case in _CASES:
        shape = [case[d] if isinstance(d, str) else d for d in inputs["x"][1]]
        x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
        [expected] = interpreter.run(before, {"x": x})
        [actual] = interpreter.run(program, {"x": x})
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_what_is_no_constant_matrix_is_left_alone() -> None:
    weight = _matrix(2, 0)
    inputs: dict[str, tuple[str, Dims]] = {"x": ("float32", ["M", _K]), "z": ("float32", [_K, _N])}
    computed = graph([helper.make_node("MatMul", ["x", "z"], ["y"])], inputs, {"y": "float32"})
    batch = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": ("float32", ["M", _K])},
        {"y": "float32"},
        {"w": np.stack([weight, weight])},
    )
    integers = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": ("int32", ["M", _K])},
        {"y": "int32"},
        {"w": np.ones((_K, _N), np.int32)},
    )
    groups = graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=2)],
        {"x": ("float32", ["M", 2 * _N, 5])},
        {"y": "float32"},
        {"w": weight[:, :, None]},
    )
    window = graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        {"x": ("float32", ["M", _N, 5])},
        {"y": "float32"},
        {"w": np.stack([weight, weight], -1)},
    )
    for proto in (computed, batch, integers, groups, window):
        assert _compile(proto, "error=0.1")[1] == ()


def test_two_nodes_share_the_factors_of_a_weight() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "w"], ["c"], name="transposed", transB=1),
        helper.make_node("MatMul", ["c", "w"], ["y"], name="second"),
    ]
    constants = {"w": _matrix(3, 0), "w.left": np.ones(1)}
    proto = graph(nodes, {"x": ("float32", ["M", _K])}, {"y": "float32"}, constants)
    program, reduced = _compile(proto, "error=1e-5")
    assert [(r.nodes, r.shape) for r in reduced] == [
        (("first", "second"), (_K, _N)),
        (("transposed",), (_N, _K)),
    ]
    assert len(program.weights()) == 4
    x = np.random.default_rng(4).standard_normal((5, _K)).astype(np.float32)
    [expected] = interpreter.run(_compile(proto)[0], {"x": x})
    [actual] = interpreter.run(program, {"x": x})
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    "text",
    ["", "0.5", "error=", "error=x", "error=0", "error=1", "ratio=-1", "ratio=nan", "rank=2"],
)
def test_options_that_say_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="between 0 and 1, such as 'error=1e-3' or 'ratio=0.5'"):
        LowRank.parse(text)


def test_an_option() -> None:
    assert LowRank.parse("ratio=0.25").limit == 0.25
    assert math.isclose(LowRank.parse("error=1e-3").limit, 0.001)
