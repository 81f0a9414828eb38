"""Tests of the names and checks of the graph builder."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from models import graph_builder


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("fc", "fc"),
        ("fc.0", "fc.0"),
        ("fc.0.1", "fc.0.1"),
        ("edge_convs.0.sc", "edge_convs.0/sc"),
        ("edge_convs.0.convs.2", "edge_convs.0/convs.2"),
    ],
)
def test_module_path(module: str, path: str) -> None:
    assert graph_builder.module_path(module) == path


def test_names_of_nodes_and_values() -> None:
    builder = graph_builder.GraphBuilder("names", {"layer.weight": np.ones((2, 3), np.float32)})
    value = builder.input("x", ["N", 3])
    value = builder.op("Gemm", [value, builder.parameter("layer.weight")], "/layer", transB=1)
    value = builder.op("Relu", [value], "/act")
    value = builder.op("Relu", [value], "/act")
    builder.output("y", value, ["N", 2])
    graph = builder.model("Names.").graph
    assert [node.name for node in graph.node] == ["/layer/Gemm", "/act/Relu", "/act/Relu_1"]
    assert [list(node.output) for node in graph.node] == [
        ["/layer/Gemm_output_0"],
        ["/act/Relu_output_0"],
        ["y"],
    ]


def test_a_contradiction_is_found() -> None:
    builder = graph_builder.GraphBuilder("bad", {"weight": np.ones((2, 4), np.float32)})
    value = builder.op("MatMul", [builder.input("x", ["N", 3]), builder.parameter("weight")], "")
    builder.output("y", value, ["N", 4])
    with pytest.raises(onnx.shape_inference.InferenceError, match="MatMul"):
        builder.model("The extents 3 and 2 do not match.")
