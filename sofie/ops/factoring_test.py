"""Convolutions of rearranged points, against the reference, and how many products they cost."""

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import Gemm, Program
from sofie.testing.operators import graph, hold

_CASES = [{"N": 2, "P": 5}, {"N": 1, "P": 4}, {"N": 3, "P": 9}]
_K = 3


def _edge_conv(spelling: str, bias: bool, relu: bool) -> onnx.ModelProto:
    """EdgeConv's first layer over neighbours i, i + 1, i + 2 (clamped), in two spellings."""
    rng = np.random.default_rng(17)
    constants: dict[str, np.ndarray] = {
        "w": rng.standard_normal((6, 8, 1, 1)).astype(np.float32),
        "axis": np.array([3], np.int64),
        "repeat": np.array([1, 1, 1, _K], np.int64),
        "neighbours": np.array([0, 1, 3], np.int64),
    }
    if bias:
        constants["b"] = rng.standard_normal(6).astype(np.float32)
    nodes = [helper.make_node("Unsqueeze", ["x", "axis"], ["column"])]
    nodes.append(helper.make_node("Tile", ["column", "repeat"], ["centre"]))
    if spelling == "gather":
        # Every point's neighbours are the points 0, 1 and 3: [N, 4, 3] stretched to [N, 4, P, 3].
        constants["row"] = np.array([2], np.int64)
        nodes += [
            helper.make_node("Gather", ["x", "neighbours"], ["found"], axis=2),
            helper.make_node("Unsqueeze", ["found", "row"], ["found_row"]),
            helper.make_node("Shape", ["centre"], ["shape"]),
            helper.make_node("Expand", ["found_row", "shape"], ["neighbour"]),
        ]
    else:
        # The same through points-first memory.
        constants["row"] = np.array([1], np.int64)
        nodes += [
            helper.make_node("Transpose", ["x"], ["points"], perm=[0, 2, 1]),
            helper.make_node("Gather", ["points", "neighbours"], ["found"], axis=1),
            helper.make_node("Unsqueeze", ["found", "row"], ["found_row"]),
            helper.make_node("Transpose", ["found_row"], ["moved"], perm=[0, 3, 1, 2]),
            helper.make_node("Shape", ["centre"], ["shape"]),
            helper.make_node("Expand", ["moved", "shape"], ["neighbour"]),
        ]
    nodes += [
        helper.make_node("Sub", ["neighbour", "centre"], ["difference"]),
        helper.make_node("Concat", ["centre", "difference"], ["edges"], axis=1),
        helper.make_node("Conv", ["edges", "w", *(["b"] if bias else [])], ["c"], name="conv"),
        helper.make_node("Relu" if relu else "Identity", ["c"], ["y"]),
    ]
    # The pointwise layer before puts the points channels-last, as in a network.
    first = [
        helper.make_node("Conv", ["input", "w0"], ["x"], name="before"),
    ]
    constants["w0"] = rng.standard_normal((4, 2, 1)).astype(np.float32)
    return graph(first + nodes, {"input": ("float32", ["N", 2, "P"])}, {"y": "float32"}, constants)


def _products(program: Program) -> list[Gemm]:
    return [s for s in program.steps if isinstance(s, Gemm) and "conv" in s.nodes[-1]]


@pytest.mark.parametrize("spelling", ["gather", "transposed"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_edges_are_never_multiplied(spelling: str, bias: bool, relu: bool) -> None:
    program = hold(_edge_conv(spelling, bias, relu), _CASES, tolerance=1e-4)
    (product,) = _products(program)
    # Both halves of the weights at once, on points: 2 x 6 outputs from 4 channels.
    assert (int(product.n), int(product.k)) == (12, 4)


def test_a_convolution_of_points_as_they_are_stays_one_product() -> None:
    weights = np.random.default_rng(3).standard_normal((3, 4, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["y"], name="conv"),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 4, "P"])}, {"y": "float32"}, {"w": weights})
    program = hold(model, _CASES)
    assert int(_products(program)[0].k) == 4


def test_anything_but_sums_of_rows_is_multiplied_as_it_is() -> None:
    weights = np.random.default_rng(3).standard_normal((3, 4, 1, 1)).astype(np.float32)
    constants: dict[str, np.ndarray] = {
        "w": weights,
        "axis": np.array([3], np.int64),
        "repeat": np.array([1, 1, 1, _K], np.int64),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["column"]),
        helper.make_node("Tile", ["column", "repeat"], ["tiled"]),
        helper.make_node("Exp", ["tiled"], ["e"]),
        helper.make_node("Conv", ["e", "w"], ["y"], name="conv"),
    ]
    model = graph(nodes, {"x": ("float32", ["N", 4, "P"])}, {"y": "float32"}, constants)
    hold(model, _CASES, tolerance=1e-4)
