"""Einsum against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.ir.program import Gemm
from sofie.testing.operators import Dims, compile_graph, graph, hold

_CASES = [{"N": 3, "M": 5}, {"N": 1, "M": 1}, {"N": 4, "M": 2}]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [["N", "M"]]),
        ("ij->i", [["N", "M"]]),
        ("ij->", [["N", "M"]]),
        ("ii->i", [["N", "N"]]),
        ("ii", [["N", "N"]]),
        ("...ii->...i", [["M", "N", "N"]]),
        ("ij,jk", [["N", "M"], ["M", 4]]),
        ("ij,jk->ki", [["N", "M"], ["M", 4]]),
        ("bij,bjk->bik", [[2, "N", "M"], [2, "M", 4]]),
        ("...ij,...jk->...ik", [["M", 3, "N"], ["M", "N", 2]]),
        ("bhqd,bhkd->bhqk", [[2, 3, "N", 4], [2, 3, "M", 4]]),
        ("i,j->ij", [["N"], ["M"]]),
        ("i,i->i", [["N"], ["N"]]),
        ("i,i", [["N"], ["N"]]),
        ("ij,ik,il->jkl", [["N", 2], ["N", 3], ["N", "M"]]),
        ("ijk,jl->ilk", [["N", "M", 2], ["M", 3]]),
        ("ijk,l->i", [["N", "M", 2], [3]]),
        ("b...,b...->b...", [["N", "M", 2], ["N", "M", 2]]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_equations(equation: str, shapes: list[Dims], dtype: str) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    rank = np.einsum(equation, *(np.ones([1] * len(shape)) for shape in shapes)).ndim
    model = graph(
        [helper.make_node("Einsum", names, ["y"], equation=equation)],
        {name: (dtype, shape) for name, shape in zip(names, shapes, strict=True)},
        # ONNX's own inference leaves the rank open where there is an ellipsis.
        {"y": (dtype, [f"out{axis}" for axis in range(rank)])},
    )
    hold(
        model,
        _CASES,
        reference=lambda inputs: [np.array(np.einsum(equation, *inputs.values()))],
    )


def test_an_ellipsis_broadcasts() -> None:
    model = graph(
        [helper.make_node("Einsum", ["a", "b"], ["y"], equation="...i,...i->...i")],
        {"a": ("float32", ["N", 1, 3]), "b": ("float32", [1, "M", 3])},
        {"y": ("float32", ["N", "M", 3])},
    )
    hold(
        model,
        _CASES,
        reference=lambda x: [np.array(np.einsum("...i,...i->...i", x["a"], x["b"]))],
    )


def test_a_matrix_product_is_one() -> None:
    model = graph(
        [helper.make_node("Einsum", ["a", "b"], ["y"], equation="ij,jk->ik")],
        {"a": ("float32", ["N", "M"]), "b": ("float32", ["M", 4])},
        {"y": "float32"},
    )
    assert [type(step) for step in compile_graph(model).steps] == [Gemm]


@pytest.mark.parametrize("equation", ["ij,jk->iz", "ij->ij", "i,jk->ik"])
def test_equations_that_do_not_fit_are_refused(equation: str) -> None:
    model = graph(
        [helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)],
        {"a": ("float32", ["N", "M"]), "b": ("float32", ["M", 4])},
        {"y": ("float32", ["N", 4])},
    )
    with pytest.raises(ModelError):
        compile_graph(model)
