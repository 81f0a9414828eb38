"""Gemm against the reference."""

import itertools

import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

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
