"""Which products are rounded."""

import pathlib

import numpy as np
from onnx import helper

from sofie.importer.load import load
from sofie.ir.program import DenseReduce, Gemm, Precision, Program
from sofie.passes import pipeline
from sofie.plan.lower import lower
from sofie.plan.precision import with_precision
from sofie.testing.operators import graph, hold

_MODEL = pathlib.Path(__file__).parents[2] / "models" / "particle_net.onnx"


def _products(program: Program) -> list[Gemm | DenseReduce]:
    return [s for s in program.steps if isinstance(s, Gemm | DenseReduce)]


def test_what_topk_selects_from_keeps_float32() -> None:
    """Scores, scaled before the selection, of features that another product gives."""
    rng = np.random.default_rng(3)
    constants: dict[str, np.ndarray] = {
        "w": rng.standard_normal((4, 6)).astype(np.float32),
        "s": rng.standard_normal((6, 5)).astype(np.float32),
        "k": np.array([2], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["f"], name="features"),
        helper.make_node("MatMul", ["f", "s"], ["d"], name="scores"),
        helper.make_node("Abs", ["d"], ["a"], name="abs"),
        helper.make_node("TopK", ["a", "k"], ["v", "i"], name="topk"),
    ]
    outputs = {"v": "float32", "i": "int64"}
    model = graph(nodes, {"x": ("float32", ["N", 4])}, outputs, constants)
    program = with_precision(hold(model, [{"N": 3}]), Precision.BF16)
    assert {p.nodes[-1]: p.precision for p in _products(program)} == {
        "features": Precision.BF16,
        "scores": Precision.FP32,
    }


def test_particle_net_keeps_distances_only() -> None:
    model = load(_MODEL)
    pipeline.run(model)
    products = _products(lower(model, Precision.TF32))
    exact = [p.nodes[-1] for p in products if p.precision is Precision.FP32]
    assert exact == [f"/pn/edge_convs.{i}/MatMul" for i in (1, 2)]
    assert all(p.precision is Precision.FP32 for p in _products(lower(model)))
