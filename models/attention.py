"""Multi-head attention and the encoder block around it, in ONNX nodes, as PyTorch exports them."""

from __future__ import annotations

import numpy as np

from models import graph_builder
from models.graph_builder import GraphBuilder


def block_parameters(
    random: np.random.Generator, module: str, width: int, hidden: int
) -> dict[str, graph_builder.Array32]:
    """Parameters of `encoder_block`."""
    parameters: dict[str, graph_builder.Array32] = {}
    for name in ("query", "key", "value", "out"):
        parameters |= graph_builder.linear_parameters(
            random, f"{module}.attention.{name}", width, width
        )
    parameters |= graph_builder.linear_parameters(random, f"{module}.ff.0", width, hidden)
    parameters |= graph_builder.linear_parameters(random, f"{module}.ff.1", hidden, width)
    for name in ("norm1", "norm2"):
        parameters |= graph_builder.normalization_parameters(random, f"{module}.{name}", width)
    return parameters


def multi_head(
    builder: GraphBuilder,
    query: str,
    memory: str,
    module: str,
    heads: int,
    width: int,
    bias: str | None,
) -> str:
    """Attention of query[N, Q, width] over memory[N, K, width].

    Args:
      builder: the graph.
      query: what asks.
      memory: what keys and values are made of.
      module: name of the parameters.
      heads: number of heads; divides `width`.
      width: channels.
      bias: added to the scores [N, heads, Q, K], with broadcasting.
    """
    scope = "/" + graph_builder.module_path(module)

    def split(value: str, name: str, order: list[int]) -> str:
        projected = graph_builder.linear(builder, value, f"{module}.{name}")
        extents = builder.constant(scope, [0, 0, heads, width // heads])
        parts = builder.op("Reshape", [projected, extents], scope)
        return builder.op("Transpose", [parts], scope, perm=order)

    q = split(query, "query", [0, 2, 1, 3])
    k = split(memory, "key", [0, 2, 3, 1])
    v = split(memory, "value", [0, 2, 1, 3])
    # Half of the scale on either side, as PyTorch's exporter writes it.
    root = builder.constant(scope, (width // heads) ** -0.25, np.float32)
    scores = builder.op(
        "MatMul",
        [builder.op("Mul", [q, root], scope), builder.op("Mul", [k, root], scope)],
        scope,
    )
    if bias is not None:
        scores = builder.op("Add", [scores, bias], scope)
    weights = builder.op("Softmax", [scores], scope, axis=-1)
    mixed = builder.op("MatMul", [weights, v], scope)
    mixed = builder.op("Transpose", [mixed], scope, perm=[0, 2, 1, 3])
    extents = builder.constant(scope, [0, 0, width])
    joined = builder.op("Reshape", [mixed, extents], scope)
    return graph_builder.linear(builder, joined, f"{module}.out")


def encoder_block(
    builder: GraphBuilder,
    value: str,
    module: str,
    heads: int,
    width: int,
    bias: str | None,
    *,
    memory: str | None = None,
) -> str:
    """Attention and a feed-forward network, each normalised first and added to what came in."""
    scope = "/" + graph_builder.module_path(module)
    normal = graph_builder.layer_normalization(builder, value, f"{module}.norm1")
    attended = multi_head(
        builder, normal, memory or normal, f"{module}.attention", heads, width, bias
    )
    value = builder.op("Add", [value, attended], scope)
    normal = graph_builder.layer_normalization(builder, value, f"{module}.norm2")
    hidden = gelu(builder, graph_builder.linear(builder, normal, f"{module}.ff.0"), scope)
    forward = graph_builder.linear(builder, hidden, f"{module}.ff.1")
    return builder.op("Add", [value, forward], scope)


def gelu(builder: GraphBuilder, value: str, scope: str) -> str:
    """GELU by way of Erf, as exporters write it below opset 20."""
    scaled = builder.op("Div", [value, builder.constant(scope, np.sqrt(2.0), np.float32)], scope)
    half = builder.op(
        "Add",
        [builder.op("Erf", [scaled], scope), builder.constant(scope, 1.0, np.float32)],
        scope,
    )
    product = builder.op("Mul", [value, half], scope)
    return builder.op("Mul", [product, builder.constant(scope, 0.5, np.float32)], scope)


def key_bias(builder: GraphBuilder, mask: str, scope: str) -> str:
    """Of mask[N, K] (1 where something is), what keeps attention off the rest: [N, 1, 1, K]."""
    absent = builder.op("Sub", [builder.constant(scope, 1.0, np.float32), mask], scope)
    bias = builder.op("Mul", [absent, builder.constant(scope, -1e4, np.float32)], scope)
    return builder.op("Unsqueeze", [bias, builder.constant(scope, [1, 2])], scope)
