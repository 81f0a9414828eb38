"""Dense layers and the reduction of their rows: one kernel where it can be, right everywhere."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import DenseReduce, Gemm, Program
from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 2, "P": 3}, {"N": 1, "P": 1}, {"N": 3, "P": 2}]


def _model(
    layers: int = 2,
    rows: int | str = 16,
    widths: int = 16,
    reduce: str = "ReduceMean",
    axis: int = -1,
    relu: bool = True,
    bias: bool = True,
    also_output: str = "",
) -> onnx.ModelProto:
    """``layers`` convolutions over [N, 8, P, rows], a reduction, and a shortcut added to it."""
    rng = np.random.default_rng(23)
    constants: dict[str, np.ndarray] = {"axis": np.array([axis], np.int64)}
    nodes, last, inputs = [], "x", 8
    for layer in range(layers):
        constants[f"w{layer}"] = rng.standard_normal((widths, inputs, 1, 1)).astype(np.float32) / 3
        operands = [last, f"w{layer}"]
        if bias:
            constants[f"b{layer}"] = rng.standard_normal(widths).astype(np.float32)
            operands.append(f"b{layer}")
        nodes.append(helper.make_node("Conv", operands, [f"c{layer}"], name=f"conv{layer}"))
        activation = "Relu" if relu else "Identity"
        nodes.append(helper.make_node(activation, [f"c{layer}"], [f"r{layer}"]))
        last, inputs = f"r{layer}", widths
    nodes += [
        helper.make_node(reduce, [last, "axis"], ["m"], keepdims=0),
        helper.make_node("Add", ["m", "s"], ["y"]),
    ]
    shapes: dict[str, tuple[str, Dims]] = {
        "x": ("float32", ["N", 8, "P", rows]),
        "s": ("float32", [widths, 1]),
    }
    outputs = {"y": "float32", **({also_output: "float32"} if also_output else {})}
    return graph(nodes, shapes, outputs, constants)


def _fused(program: Program) -> list[DenseReduce]:
    return [s for s in program.steps if isinstance(s, DenseReduce) and s.row.extent != 1]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("reduce", ["ReduceMean", "ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("relu", [False, True])
def test_one_kernel(layers: int, rows: int, reduce: str, relu: bool) -> None:
    program = hold(_model(layers, rows, reduce=reduce, relu=relu), _CASES, tolerance=1e-4)
    (step,) = _fused(program)
    assert len(step.layers) == layers
    assert not any(isinstance(s, Gemm) for s in program.steps)


def test_without_bias() -> None:
    assert _fused(hold(_model(bias=False), _CASES, tolerance=1e-4))


@pytest.mark.parametrize(
    "other",
    [
        {"rows": 7},
        {"rows": "P"},
        {"widths": 12},
        {"widths": 264},
        {"layers": 5},
        {"reduce": "ReduceMin"},
        {"reduce": "ReduceSumSquare"},
        {"axis": 2},
        {"axis": 1},
        {"also_output": "r1"},
    ],
)
def test_what_the_kernel_does_not_cover_is_computed_as_products(other: dict[str, object]) -> None:
    options: dict[str, object] = {"rows": 16, **other}
    model = _model(**options)  # type: ignore[arg-type]
    if options.get("axis") in (1, 2):
        model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 1
    program = hold(model, _CASES, tolerance=1e-4)
    assert not _fused(program)
    assert any(isinstance(s, Gemm | DenseReduce) for s in program.steps)
