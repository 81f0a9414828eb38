"""Products of one operand are launched once, and give what they gave apart."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import DenseReduce, Gemm, Program
from sofie.testing.operators import graph, hold

_CASES = [{"N": 2, "P": 5}, {"N": 1, "P": 1}, {"N": 3, "P": 4}]


def _model(bias: tuple[bool, bool], widths: tuple[int, int], relu: bool = False) -> onnx.ModelProto:
    """Two convolutions of the same points, read together."""
    rng = np.random.default_rng(31)
    constants: dict[str, np.ndarray] = {"axis": np.array([1], np.int64)}
    nodes = [helper.make_node("Relu", ["x"], ["p"])]
    for i, width in enumerate(widths):
        constants[f"w{i}"] = rng.standard_normal((width, 4, 1)).astype(np.float32)
        operands = ["p", f"w{i}"]
        if bias[i]:
            constants[f"b{i}"] = rng.standard_normal(width).astype(np.float32)
            operands.append(f"b{i}")
        nodes.append(helper.make_node("Conv", operands, [f"c{i}"], name=f"conv{i}"))
        last = f"c{i}"
        if relu and i == 0:
            nodes.append(helper.make_node("Relu", ["c0"], ["r0"]))
            last = "r0"
        nodes.append(helper.make_node("ReduceMax", [last, "axis"], [f"m{i}"]))
    nodes.append(helper.make_node("Sub", ["m0", "m1"], ["y"]))
    return graph(nodes, {"x": ("float32", ["N", 4, "P"])}, {"y": "float32"}, constants)


def _products(program: Program) -> list[Gemm | DenseReduce]:
    return [s for s in program.steps if isinstance(s, Gemm | DenseReduce)]


@pytest.mark.parametrize("bias", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("widths", [(3, 3), (3, 5), (8, 2)])
def test_one_launch(bias: tuple[bool, bool], widths: tuple[int, int]) -> None:
    program = hold(_model(bias, widths), _CASES, tolerance=1e-4)
    (product,) = _products(program)
    if isinstance(product, Gemm):
        outputs, added = int(product.n), product.bias
    else:
        outputs, added = product.layers[0].outputs, product.layers[0].bias
    assert outputs == sum(widths)
    assert (added is None) == (bias == (False, False))


def test_other_activations_stay_apart() -> None:
    program = hold(_model((True, True), (3, 5), relu=True), _CASES, tolerance=1e-4)
    assert len(_products(program)) == 2


def test_a_result_that_is_an_output_stays_where_it_is() -> None:
    rng = np.random.default_rng(5)
    constants = {f"w{i}": rng.standard_normal((4, 3)).astype(np.float32) for i in range(2)}
    nodes = [helper.make_node("Gemm", ["x", f"w{i}"], [f"y{i}"]) for i in range(2)]
    model = graph(
        nodes, {"x": ("float32", ["N", 4])}, {"y0": "float32", "y1": "float32"}, constants
    )
    program = hold(model, [{"N": 3}, {"N": 1}, {"N": 0}])
    assert len(_products(program)) == 2


def test_results_that_are_read_as_one_long_row_stay_apart() -> None:
    constants = {
        "w0": np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32),
        "w1": np.random.default_rng(2).standard_normal((6, 4)).astype(np.float32),
    }
    nodes = [helper.make_node("Gemm", ["x", f"w{i}"], [f"g{i}"], transB=1) for i in range(2)]
    nodes += [helper.make_node("Tanh", [f"g{i}"], [f"y{i}"]) for i in range(2)]
    model = graph(
        nodes, {"x": ("float32", ["N", 4])}, {"y0": "float32", "y1": "float32"}, constants
    )
    hold(model, [{"N": 5}, {"N": 1}, {"N": 0}])


@pytest.mark.parametrize("before", [3, 4, 8])
def test_a_concatenation_reads_the_joined_result(before: int) -> None:
    """Behind a guard, a column counts from where its part of the concatenation begins."""
    rng = np.random.default_rng(9)
    constants = {f"w{i}": rng.standard_normal((4, 4, 1)).astype(np.float32) for i in range(2)}
    nodes = [helper.make_node("Relu", ["x"], ["p"])]
    nodes += [helper.make_node("Conv", ["p", f"w{i}"], [f"c{i}"]) for i in range(2)]
    nodes.append(helper.make_node("Concat", ["z", "c0", "c1"], ["y"], axis=1))
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "x": ("float32", ["N", 4, "P"]),
        "z": ("float32", ["N", before, "P"]),
    }
    program = hold(graph(nodes, inputs, {"y": "float32"}, constants), _CASES, tolerance=1e-4)
    assert len(_products(program)) == 1
