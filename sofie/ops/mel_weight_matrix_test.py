"""MelWeightMatrix against the reference."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from sofie.testing.operators import graph, hold

_NAMES = ["bands", "length", "rate", "low", "high"]


@pytest.mark.parametrize("result", ["float32", "float64", "float16"])
def test_types(result: str) -> None:
    numbers = [np.array(8, np.int64), np.array(32, np.int64), np.array(8192, np.int64)]
    edges = [np.array(edge, np.float32) for edge in (100, 4000)]
    kind = getattr(TensorProto, {"float64": "DOUBLE", "float32": "FLOAT"}.get(result, "FLOAT16"))
    model = graph(
        [helper.make_node("MelWeightMatrix", _NAMES, ["w"], output_datatype=kind)]
        + [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (result, ["N", 17])},
        {"y": result},
        dict(zip(_NAMES, [*numbers, *edges], strict=True)),
    )
    hold(model, [{"N": 3}, {"N": 0}])


def test_all_numbers_are_inputs() -> None:
    model = graph(
        [helper.make_node("MelWeightMatrix", _NAMES, ["y"])],
        {n: ("int64" if i < 3 else "float32", []) for i, n in enumerate(_NAMES)},
        {"y": ("float32", ["L", "B"])},
    )
    cases = [(8, 16, 8192, 0.0, 4096.0), (1, 8, 100, 3.0, 40.0), (20, 64, 44100, 20.0, 9000.0)]
    arrays = [
        {
            name: np.array(value, np.int64 if i < 3 else np.float32)
            for i, (name, value) in enumerate(zip(_NAMES, case, strict=True))
        }
        for case in cases
    ]
    hold(model, arrays)
