"""Gemm against the reference."""

import itertools

import pytest
from onnx import helper

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, graph, hold, import_model

_CASES = [{"N": 3}, {"N": 1}, {"N": 6}]


@pytest.mark.parametrize(("a", "b"), list(itertools.product([0, 1], repeat=2)))
def test_transposed(a: int, b: int) -> None:
    model = graph(
        [helper.make_node("Gemm", ["a", "b"], ["y"], transA=a, transB=b)],
        {"a": ("float32", [4, "N"] if a else ["N", 4]), "b": ("float32", [5, 4] if b else [4, 5])},
        {"y": "float32"},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("bias", [[5], [1, 5], ["N", 1], [], ["N", 5], [1]])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0), (1.0, 0.0)])
@pytest.mark.parametrize("relu", [False, True])
def test_bias(bias: Dims, alpha: float, beta: float, relu: bool) -> None:
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["g"], alpha=alpha, beta=beta)]
    nodes.append(helper.make_node("Relu" if relu else "Identity", ["g"], ["y"]))
    model = graph(
        nodes,
        {"a": ("float32", ["N", 4]), "b": ("float32", [4, 5]), "c": ("float32", bias)},
        {"y": "float32"},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("relu", [False, True])
def test_integers(kind: str, relu: bool) -> None:
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["g"], alpha=3.0, beta=2.0, transB=1)]
    relu = relu and kind.startswith("i")
    nodes.append(helper.make_node("Relu" if relu else "Identity", ["g"], ["y"]))
    model = graph(
        nodes, {"a": (kind, ["N", 4]), "b": (kind, [5, 4]), "c": (kind, ["N", 1])}, {"y": kind}
    )
    hold(model, _CASES)


def test_integers_have_no_fractions() -> None:
    nodes = [helper.make_node("Gemm", ["a", "b"], ["y"], alpha=0.5)]
    model = graph(nodes, {"a": ("int32", ["N", 4]), "b": ("int32", [4, 5])}, {"y": "int32"})
    with pytest.raises(ModelError, match="an alpha or beta with a fraction"):
        check(import_model(model))
