"""Passes make fewer kernels and change no result."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.passes import clean, fold_batch_normalization, fuse_activation
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import graph, hold, import_model

_CASES = [{"N": 2, "M": 8}, {"N": 1, "M": 7}, {"N": 3, "M": 1}]


def _network(extra_output: bool = False) -> onnx.ModelProto:
    rng = np.random.default_rng(11)
    constants = {
        "w": rng.standard_normal((3, 4, 1)).astype(np.float32),
        "b": rng.standard_normal(3).astype(np.float32),
        **{n: rng.uniform(0.5, 2, 3).astype(np.float32) for n in ("scale", "bias", "mean", "var")},
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv"),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], name="bn"
        ),
        helper.make_node("Relu", ["n"], ["y"], name="relu"),
    ]
    outputs = {"y": "float32", **({"c": "float32"} if extra_output else {})}
    return graph(nodes, {"x": ("float32", ["N", 4, "M"])}, outputs, constants)


def test_conv_normalization_relu_is_one_product() -> None:
    program = hold(_network(), _CASES, tolerance=1e-4)
    kinds = [type(step).__name__ for step in program.steps]
    # The input is put channels-last, the result row-major.
    assert kinds == ["Pointwise", "Gemm", "Pointwise"]
    assert program.steps[1].nodes == ("conv + bn + relu",)


def test_a_convolution_that_is_an_output_is_left_alone() -> None:
    program = hold(_network(extra_output=True), _CASES, tolerance=1e-4)
    assert all("bn" not in s.nodes[0] for s in program.steps if type(s).__name__ == "Gemm")


@pytest.mark.parametrize("passes", [(), (clean,), (fold_batch_normalization,), (fuse_activation,)])
def test_each_pass_alone_keeps_the_result(passes: tuple[object, ...]) -> None:
    x = np.random.default_rng(5).standard_normal((2, 4, 6)).astype(np.float32)
    expected = interpreter.run(lower(import_model(_network())), {"x": x})[0]
    model = import_model(_network())
    for one in passes:
        one.run(model)  # type: ignore[attr-defined]
    actual = interpreter.run(lower(model), {"x": x})[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
