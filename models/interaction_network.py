"""Makes `interaction_network.onnx`: a graph network on edge lists, as for charged tracks.

    python -m models.interaction_network --output=models/interaction_network.onnx

After P. Battaglia et al., arXiv:1612.00222, and G. DeZoort et al., arXiv:2103.16701. Inputs
nodes[V, 6], edges[E, 4] (fp32) and edge_index[2, E] (int64: source and destination of each edge),
outputs edge_scores[E, 1] and node_features[V, 8]. Two rounds: a message from every edge, summed at
its destination, and an update of the nodes. The first sums by ScatterElements, the second by
ScatterND.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx

from models import graph_builder
from models.graph_builder import GraphBuilder

SEED = 1612
NODE = 6
EDGE = 4
HIDDEN = 40
MESSAGE = 8
NETWORKS = {
    "edge.0": (2 * NODE + EDGE, HIDDEN, MESSAGE),
    "node.0": (NODE + MESSAGE, HIDDEN, MESSAGE),
    "edge.1": (3 * MESSAGE, HIDDEN, MESSAGE),
    "node.1": (2 * MESSAGE, HIDDEN, MESSAGE),
    "score": (MESSAGE, HIDDEN, 1),
}


def _network(builder: GraphBuilder, value: str, module: str) -> str:
    value = graph_builder.linear(builder, value, f"{module}.0")
    value = builder.op("Relu", [value], "/" + graph_builder.module_path(module))
    return graph_builder.linear(builder, value, f"{module}.1")


def _round(builder: GraphBuilder, nodes: str, edges: str, index: str, number: int) -> list[str]:
    """Node and edge features after one round."""
    scope = f"/round.{number}"
    ends = []
    for end in (0, 1):
        row = builder.op("Gather", [index, builder.constant(scope, end)], scope, axis=0)
        ends.append(row)
    around = [builder.op("Gather", [nodes, end], scope, axis=0) for end in ends]
    joined = builder.op("Concat", [*around, edges], scope, axis=1)
    message = _network(builder, joined, f"edge.{number}")
    count = builder.op(
        "Gather",
        [builder.op("Shape", [nodes], scope), builder.constant(scope, [0])],
        scope,
        axis=0,
    )
    shape = builder.op("Concat", [count, builder.constant(scope, [MESSAGE])], scope, axis=0)
    nothing = builder.op("Expand", [builder.constant(scope, [[0]], np.float32), shape], scope)
    column = builder.op("Unsqueeze", [ends[1], builder.constant(scope, [1])], scope)
    if number == 0:
        whole = builder.op("Expand", [column, builder.op("Shape", [message], scope)], scope)
        total = builder.op(
            "ScatterElements", [nothing, whole, message], scope, axis=0, reduction="add"
        )
    else:
        total = builder.op("ScatterND", [nothing, column, message], scope, reduction="add")
    update = builder.op("Concat", [nodes, total], scope, axis=1)
    return [_network(builder, update, f"node.{number}"), message]


def make() -> onnx.ModelProto:
    """Returns the model of `interaction_network.onnx`."""
    random = np.random.default_rng(SEED)
    parameters: dict[str, graph_builder.Array32] = {}
    for module, widths in NETWORKS.items():
        for layer, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
            parameters |= graph_builder.linear_parameters(
                random, f"{module}.{layer}", inputs, outputs
            )
    builder = GraphBuilder("interaction_network", parameters)
    nodes = builder.input("nodes", ["V", NODE])
    edges = builder.input("edges", ["E", EDGE])
    index = builder.input("edge_index", [2, "E"], np.int64)
    for number in (0, 1):
        nodes, edges = _round(builder, nodes, edges, index, number)
    score = _network(builder, edges, "score")
    builder.output("edge_scores", builder.op("Sigmoid", [score], ""), ["E", 1])
    builder.output("node_features", builder.op("Tanh", [nodes], ""), ["V", MESSAGE])
    return builder.model("An interaction network on an edge list.")


if __name__ == "__main__":
    graph_builder.run(make)
