"""GatherND against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold


@pytest.mark.parametrize(
    ("shape", "batch"),
    [(["K", 2], 0), (["K", 1], 0), ([3, "K", 1], 1), ([3, 2], 1), ([3, 4, 1], 2), (["K", 3], 0)],
)
def test_depths_and_batches(shape: Dims, batch: int) -> None:
    model = graph(
        [helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=batch)],
        {"x": ("float32", [3, 4, "N"]), "i": ("int64", shape)},
        {"y": "float32"},
    )
    for k, n in ((5, 3), (1, 2), (0, 4)):
        extents = [k if d == "K" else int(d) for d in shape]
        indices = np.random.default_rng(k).integers(-2, 2, extents)
        hold(model, [{"N": n, "K": k}], {"i": indices})


def test_tuples_of_symbolic_length_are_refused() -> None:
    model = graph(
        [
            helper.make_node("GatherND", ["x", "i"], ["z"], name="pick"),
            helper.make_node("Size", ["z"], ["y"]),
        ],
        {"x": ("float32", [3, 4]), "i": ("int64", [2, "K"])},
        {"y": "int64"},
    )
    with pytest.raises(ModelError, match=r"pick \(GatherND\): index tuples of symbolic length"):
        compile_graph(model)
