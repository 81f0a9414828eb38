"""ReverseSequence against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing.operators import graph, hold


@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_both_layouts(time: int, dtype: str) -> None:
    axes: list[int | str] = ["T", "B", 2] if time == 0 else ["B", "T", 2]
    model = graph(
        [
            helper.make_node(
                "ReverseSequence", ["x", "l"], ["y"], time_axis=time, batch_axis=1 - time
            )
        ],
        {"x": (dtype, axes), "l": ("int64", ["B"])},
        {"y": dtype},
    )
    for t, lengths in ((4, [4, 2, 1]), (5, [5]), (3, []), (1, [1, 1])):
        hold(model, [{"T": t, "B": len(lengths)}], {"l": np.array(lengths, np.int64)})
