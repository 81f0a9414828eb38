"""BatchNormalization against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold

_STATISTICS = ["scale", "bias", "mean", "variance"]


def _constants() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {n: rng.uniform(0.5, 2, 3).astype(np.float32) for n in _STATISTICS}


@pytest.mark.parametrize("shape", [["N", 3], ["N", 3, "M"], ["N", 3, "M", 4]])
def test_ranks(shape: Dims) -> None:
    model = graph(
        [helper.make_node("BatchNormalization", ["x", *_STATISTICS], ["y"], epsilon=1e-3)],
        {"x": ("float32", shape)},
        {"y": "float32"},
        _constants(),
    )
    hold(model, [{"N": 3, "M": 5}, {"N": 0, "M": 1}, {"N": 4, "M": 2}])


def test_statistics_that_are_inputs_are_refused() -> None:
    inputs: dict[str, tuple[str, Dims]] = {n: ("float32", [3]) for n in _STATISTICS}
    model = graph(
        [helper.make_node("BatchNormalization", ["x", *_STATISTICS], ["y"], name="bn")],
        {"x": ("float32", ["N", 3]), **inputs},
        {"y": "float32"},
    )
    with pytest.raises(ModelError, match=r"bn \(BatchNormalization\): .* not a constant"):
        compile_graph(model)
