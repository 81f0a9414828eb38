"""Makes `transformer.onnx`: a Transformer encoder over sequences of any length.

    python -m models.transformer --output=models/transformer.onnx

Inputs features[N, L, 16] and mask[N, L] (1 for the elements of a sequence, 0 for padding), output
probabilities[N, 5], all fp32: a projection to 64 channels, six blocks of attention with four heads
and a feed-forward network of 128, the mean over the sequence, one fully connected layer, a softmax.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import attention, graph_builder

SEED = 64
FEATURES = 16
WIDTH = 64
HEADS = 4
LAYERS = 6
HIDDEN = 128
CLASSES = 5


def make() -> onnx.ModelProto:
    """Returns the model of `transformer.onnx`."""
    random = np.random.default_rng(SEED)
    parameters = graph_builder.linear_parameters(random, "embed", FEATURES, WIDTH)
    for layer in range(LAYERS):
        parameters |= attention.block_parameters(random, f"layers.{layer}", WIDTH, HIDDEN)
    parameters |= graph_builder.normalization_parameters(random, "norm", WIDTH)
    parameters |= graph_builder.linear_parameters(random, "fc", WIDTH, CLASSES)

    builder = graph_builder.GraphBuilder("transformer", parameters)
    features = builder.input("features", ["N", "L", FEATURES])
    mask = builder.input("mask", ["N", "L"])
    bias = attention.key_bias(builder, mask, "")
    value = graph_builder.linear(builder, features, "embed")
    for layer in range(LAYERS):
        value = attention.encoder_block(builder, value, f"layers.{layer}", HEADS, WIDTH, bias)
    value = graph_builder.layer_normalization(builder, value, "norm")
    present = builder.op("Unsqueeze", [mask, builder.constant("", [2])], "")
    axes = builder.constant("", [1])
    total = builder.op("ReduceSum", [builder.op("Mul", [value, present], ""), axes], "", keepdims=0)
    count = builder.op("ReduceSum", [mask, axes], "", keepdims=1)
    count = builder.op("Max", [count, builder.constant("", 1.0, np.float32)], "")
    pooled = builder.op("Div", [total, count], "")
    logits = graph_builder.linear(builder, pooled, "fc")
    builder.output("probabilities", builder.op("Softmax", [logits], "", axis=-1), ["N", CLASSES])
    return builder.model("A Transformer encoder that classifies sequences.")


if __name__ == "__main__":
    graph_builder.run(make)
