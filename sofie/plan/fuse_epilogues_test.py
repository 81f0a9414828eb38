"""What follows element by element from dense layers is stored by them."""

import numpy as np
import onnx
from onnx import helper

from sofie.ir.program import DenseReduce, Program
from sofie.testing.operators import graph, hold

_CASES = [{"N": 3}, {"N": 1}, {"N": 0}, {"N": 40}]


def _model(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    """Nodes after ``g = Gemm(x, w, b)`` with 16 outputs, and an input ``z`` of their shape."""
    rng = np.random.default_rng(9)
    constants: dict[str, np.ndarray] = {
        "w": rng.standard_normal((16, 12)).astype(np.float32),
        "b": rng.standard_normal(16).astype(np.float32),
        "s": rng.standard_normal(16).astype(np.float32),
        "axes": np.array([1], np.int64),
    }
    first = helper.make_node("Gemm", ["x", "w", "b"], ["g"], transB=1)
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "x": ("float32", ["N", 12]),
        "z": ("float32", ["N", 16]),
    }
    return graph([first, *nodes], inputs, dict.fromkeys(outputs, "float32"), constants)


def _launches(program: Program) -> list[str]:
    return [type(step).__name__ for step in program.steps]


def test_a_sum_and_a_scale_are_no_launch() -> None:
    nodes = [
        helper.make_node("Add", ["g", "z"], ["a"]),
        helper.make_node("Mul", ["a", "s"], ["y"]),
    ]
    program = hold(_model(nodes, ["y"]), _CASES)
    assert _launches(program) == ["DenseReduce"]
    (step,) = program.steps
    assert isinstance(step, DenseReduce) and not step.also


def test_a_result_that_others_read_is_stored_too() -> None:
    nodes = [
        helper.make_node("Mul", ["g", "z"], ["y"]),
        helper.make_node("ReduceSum", ["g"], ["t"], keepdims=0),
    ]
    program = hold(_model(nodes, ["y", "t"]), _CASES)
    assert _launches(program) == ["DenseReduce", "Reduce"]
    assert [b.name for b in program.steps[0].writes()][1:] == ["y"]
    program = hold(_model(nodes[:1], ["y", "g"]), _CASES)
    assert _launches(program) == ["DenseReduce"]


def test_other_points_and_later_operands_stay_apart() -> None:
    transposed = helper.make_node("Transpose", ["g"], ["y"], perm=[1, 0])
    assert _launches(hold(_model([transposed], ["y"]), _CASES)) == ["DenseReduce", "Pointwise"]
    # The mean is not there when the product is stored.
    nodes = [
        helper.make_node("ReduceMean", ["g", "axes"], ["m"], keepdims=1),
        helper.make_node("Sub", ["g", "m"], ["y"]),
    ]
    program = hold(_model(nodes, ["y"]), _CASES)
    assert _launches(program)[0] == "DenseReduce" and len(program.steps) == 3
