"""Det against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.interpreter import RequirementError, run
from sofie.testing.operators import Dims, compile_graph, graph, hold


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [["M", "M"], ["N", "M", "M"], [2, "N", 3, 3], ["N", 1, 1]])
def test_determinant(dtype: str, shape: Dims) -> None:
    model = graph([helper.make_node("Det", ["x"], ["y"])], {"x": (dtype, shape)}, {"y": dtype})
    sizes = [{"N": 3, "M": 4}, {"N": 1, "M": 1}, {"N": 0, "M": 7}, {"N": 2, "M": 2}]
    hold(model, sizes, tolerance=1e-4)


def test_a_matrix_without_elements_has_the_determinant_1() -> None:
    model = graph(
        [helper.make_node("Det", ["x"], ["y"])],
        {"x": ("float32", ["N", "M", "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "M": 0}])


def test_pivots() -> None:
    """Zeros on the diagonal, rows that must be exchanged, and matrices without an inverse."""
    model = graph(
        [helper.make_node("Det", ["x"], ["y"])],
        {"x": ("float32", ["N", 3, 3])},
        {"y": "float32"},
    )
    x = np.array(
        [
            [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
            [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
            [[0, 0, 2], [0, 3, 1], [4, 1, 1]],
            [[1, 2, 3], [2, 4, 6], [1, 0, 1]],
            [[0, 0, 0], [1, 2, 3], [4, 5, 6]],
            [[0, 1, 2], [0, 3, 4], [0, 5, 7]],
        ],
        np.float32,
    )
    hold(model, [{"x": x}, {"x": x[:1]}], tolerance=1e-5)


def test_rows_and_columns_must_be_equally_many() -> None:
    model = graph(
        [helper.make_node("Det", ["x"], ["y"])], {"x": ("float32", ["A", "B"])}, {"y": "float32"}
    )
    program = compile_graph(model)
    with pytest.raises(RequirementError, match="rows and columns of a matrix must be equal"):
        run(program, {"x": np.zeros((2, 3), np.float32)})
