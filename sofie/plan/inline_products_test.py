"""Products of few factors are computed where TopK reads them."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import Gemm, Program, TopK
from sofie.testing.operators import graph, hold

_CASES = [{"N": 3, "P": 7}, {"N": 1, "P": 2}, {"N": 0, "P": 5}, {"N": 2, "P": 40}]


def _nearest(coordinates: int, transposed: bool = False) -> onnx.ModelProto:
    """The two points nearest to each point, but for what is the same for all of its neighbours."""
    shape: list[int | str] = ["N", "P", coordinates]
    if transposed:
        shape[1:] = coordinates, "P"
    a, b = ("t", "x") if transposed else ("x", "t")
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", [a, b], ["d"]),
        helper.make_node("Mul", ["d", "scale"], ["s"]),
        helper.make_node("Add", ["s", "square"], ["n"]),
        helper.make_node("TopK", ["n", "k"], ["v", "i"], largest=0),
    ]
    constants: dict[str, np.ndarray] = {
        "k": np.array([2], np.int64),
        "scale": np.array(-2, np.float32),
    }
    outputs = {"v": "float32", "i": "int64"}
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "x": ("float32", shape),
        "square": ("float32", ["N", 1, "P"]),
    }
    return graph(nodes, inputs, outputs, constants)


def _products(program: Program) -> int:
    return sum(isinstance(step, Gemm) for step in program.steps)


@pytest.mark.parametrize("coordinates", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_few_factors_are_no_launch(coordinates: int, transposed: bool) -> None:
    program = hold(_nearest(coordinates, transposed), _CASES)
    assert _products(program) == 0
    assert any(isinstance(step, TopK) for step in program.steps)


def test_many_factors_stay_a_product() -> None:
    assert _products(hold(_nearest(8), _CASES)) == 1


def test_what_others_read_stays_a_product() -> None:
    model = _nearest(2)
    output = helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, ["N", "P", "P"])
    model.graph.output.append(output)
    assert _products(hold(model, _CASES)) == 1
