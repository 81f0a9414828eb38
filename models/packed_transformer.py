"""Makes `packed_transformer.onnx`: a Transformer encoder over sequences that lie one after another.

    python -m models.packed_transformer --output=models/packed_transformer.onnx

Inputs features[T, 16] of all elements of all sequences and lengths[N], output probabilities[N, 5].
Two blocks of attention with four heads and a feed-forward network of 128, on 64 channels; then one
query for each sequence looks at all of its elements, one fully connected layer, a softmax. There is
no padding: attention is docs/packed_attention.md. Elements behind the last sequence have no effect.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import attention, graph_builder
from models.graph_builder import GraphBuilder

SEED = 4096
FEATURES = 16
WIDTH = 64
HEADS = 4
LAYERS = 2
HIDDEN = 128
CLASSES = 5


def _attend(builder: GraphBuilder, scope: str, operands: list[str], ends: list[str]) -> str:
    """[rows, WIDTH] from operands [rows, WIDTH] and the ends of rows and keys."""
    extents = builder.constant(scope, [-1, HEADS, WIDTH // HEADS])
    heads = [builder.op("Reshape", [operand, extents], scope) for operand in operands]
    mixed = builder.op("PackedAttention", [*heads, *ends], scope, domain=graph_builder.SOFIE)
    return builder.op("Reshape", [mixed, builder.constant(scope, [-1, WIDTH])], scope)


def _block(builder: GraphBuilder, value: str, module: str, ends: str) -> str:
    """Attention and a feed-forward network, each normalised first and added to what came in."""
    scope = "/" + graph_builder.module_path(module)
    normal = graph_builder.layer_normalization(builder, value, f"{module}.norm1")
    operands = [
        graph_builder.linear(builder, normal, f"{module}.attention.{name}")
        for name in ("query", "key", "value")
    ]
    mixed = _attend(builder, scope, operands, [ends])
    mixed = graph_builder.linear(builder, mixed, f"{module}.attention.out")
    value = builder.op("Add", [value, mixed], scope)
    normal = graph_builder.layer_normalization(builder, value, f"{module}.norm2")
    hidden = graph_builder.linear(builder, normal, f"{module}.ff.0")
    hidden = attention.gelu(builder, hidden, scope)
    forward = graph_builder.linear(builder, hidden, f"{module}.ff.1")
    return builder.op("Add", [value, forward], scope)


def _ends(builder: GraphBuilder, lengths: str) -> str:
    """[N + 1]: 0, then where each sequence ends."""
    totals = builder.op("CumSum", [lengths, builder.constant("", 0)], "")
    return builder.op("Concat", [builder.constant("", [0]), totals], "", axis=0)


def _parameters(random: np.random.Generator) -> dict[str, graph_builder.Array32]:
    parameters = graph_builder.linear_parameters(random, "embed", FEATURES, WIDTH)
    for layer in range(LAYERS):
        parameters |= attention.block_parameters(random, f"layers.{layer}", WIDTH, HIDDEN)
    for name in ("key", "value"):
        parameters |= graph_builder.linear_parameters(random, f"pool.{name}", WIDTH, WIDTH)
    parameters["pool.query"] = random.standard_normal((1, WIDTH)).astype(np.float32)
    return parameters | graph_builder.linear_parameters(random, "fc", WIDTH, CLASSES)


def make() -> onnx.ModelProto:
    """Returns the model of `packed_transformer.onnx`."""
    builder = GraphBuilder("packed_transformer", _parameters(np.random.default_rng(SEED)))
    features = builder.input("features", ["T", FEATURES])
    lengths = builder.input("lengths", ["N"], np.int64)
    ends = _ends(builder, lengths)
    value = graph_builder.linear(builder, features, "embed")
    for layer in range(LAYERS):
        value = _block(builder, value, f"layers.{layer}", ends)

    # One query for each sequence.
    scope = "/pool"
    count = builder.op("Shape", [lengths], scope)
    extents = builder.op("Concat", [count, builder.constant(scope, [WIDTH])], scope, axis=0)
    query = builder.op("Expand", [builder.parameter("pool.query"), extents], scope)
    numbers = [builder.constant(scope, number) for number in (0, 1)]
    limit = builder.op("Squeeze", [count], scope)
    limit = builder.op("Add", [limit, numbers[1]], scope)
    own = builder.op("Range", [numbers[0], limit, numbers[1]], scope)
    operands = [graph_builder.linear(builder, value, f"pool.{name}") for name in ("key", "value")]
    pooled = _attend(builder, scope, [query, *operands], [own, ends])
    logits = graph_builder.linear(builder, pooled, "fc")
    builder.output("probabilities", builder.op("Softmax", [logits], "", axis=-1), ["N", CLASSES])
    return builder.model("A Transformer encoder that classifies sequences without padding.")


if __name__ == "__main__":
    graph_builder.run(make)
