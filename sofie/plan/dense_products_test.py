"""Products with constant weights take their rows, and the products before them, along."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import DenseReduce, Gemm, Program
from sofie.testing.operators import graph, hold

_CASES = [{"N": 3}, {"N": 1}, {"N": 0}, {"N": 40}]


def _network(widths: list[int], last: str = "Identity") -> onnx.ModelProto:
    """Dense layers with bias and ReLU between them, over the sum of two inputs."""
    rng = np.random.default_rng(7)
    constants: dict[str, np.ndarray] = {}
    nodes = [helper.make_node("Add", ["x", "z"], ["h0"])]
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        constants[f"w{i}"] = rng.standard_normal((outputs, inputs)).astype(np.float32)
        constants[f"b{i}"] = rng.standard_normal(outputs).astype(np.float32)
        nodes.append(helper.make_node("Gemm", [f"h{i}", f"w{i}", f"b{i}"], [f"g{i}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"g{i}"], [f"h{i + 1}"]))
    nodes.append(helper.make_node(last, [f"h{len(widths) - 1}"], ["y"]))
    shape: list[int | str] = ["N", widths[0]]
    return graph(
        nodes, {"x": ("float32", shape), "z": ("float32", shape)}, {"y": "float32"}, constants
    )


def _launches(program: Program) -> list[str]:
    return [type(step).__name__ for step in program.steps]


@pytest.mark.parametrize("widths", [[5, 8], [16, 64, 32], [128, 64, 64, 8], [7, 8, 16, 24, 32]])
def test_a_network_is_one_launch(widths: list[int]) -> None:
    program = hold(_network(widths), _CASES, tolerance=1e-4)
    assert _launches(program) == ["DenseReduce"]
    (step,) = program.steps
    assert isinstance(step, DenseReduce)
    assert [layer.outputs for layer in step.layers] == widths[1:]


def test_a_convolution_computes_its_windows_on_the_way() -> None:
    rng = np.random.default_rng(8)
    weight = rng.standard_normal((8, 4, 3, 5)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 1], pads=[1, 2, 0, 2])
    model = graph([node], {"x": ("float32", ["N", 4, 9, 7])}, {"y": "float32"}, {"w": weight})
    program = hold(model, _CASES, tolerance=1e-4)
    # The graph's output has its channels first.
    assert _launches(program) == ["DenseReduce", "Pointwise"]
    step = program.steps[0]
    assert isinstance(step, DenseReduce)
    assert [int(loop.extent) for loop in step.channels] == [3, 5, 4]


def test_one_layer_may_be_wide() -> None:
    program = hold(_network([12, 768]), _CASES, tolerance=1e-4)
    assert _launches(program) == ["DenseReduce"]
    program = hold(_network([12, 264, 8]), _CASES, tolerance=1e-4)
    assert _launches(program) == ["DenseReduce", "Gemm"]


@pytest.mark.parametrize("widths", [[5, 12], [264, 8], [8, 1032]])
def test_what_the_kernel_does_not_cover_stays_a_product(widths: list[int]) -> None:
    program = hold(_network(widths), _CASES, tolerance=1e-4)
    assert any(isinstance(step, Gemm) for step in program.steps)


def test_large_weights_are_spread_over_blocks() -> None:
    program = hold(_network([256, 256, 8]), _CASES, tolerance=1e-4)
    assert _launches(program) == ["DenseReduce", "DenseReduce"]


def test_five_layers_are_two_launches() -> None:
    program = hold(_network([8] * 6), _CASES, tolerance=1e-4)
    assert _launches(program) == ["DenseReduce", "DenseReduce"]


def test_rows_that_others_read_too_are_in_memory() -> None:
    model = _network([8, 16])
    output = helper.make_tensor_value_info("h0", onnx.TensorProto.FLOAT, ["N", 8])
    model.graph.output.append(output)
    program = hold(model, _CASES, tolerance=1e-4)
    assert _launches(program) == ["Pointwise", "DenseReduce"]
