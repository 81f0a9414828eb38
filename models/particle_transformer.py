"""Makes `particle_transformer.onnx`: a small Particle Transformer.

    python -m models.particle_transformer --output=models/particle_transformer.onnx

After H. Qu, C. Li, S. Qian, "Particle Transformer for Jet Tagging", arXiv:2202.03772: attention
between a jet's particles with a bias from features of each pair, then class attention.

Inputs features[N, 17, P], kinematics[N, 3, P] (log pT, rapidity, azimuth) and mask[N, 1, P] (1 for
particles, 0 for padding), output probabilities[N, 10], all fp32. Four blocks of particle attention
and two of class attention, 64 channels, four heads. The pair features are ln Δ, ln kT, ln z and
ln m² of two massless particles.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import attention, graph_builder
from models.graph_builder import GraphBuilder

SEED = 2202
FEATURES = 17
WIDTH = 64
HEADS = 4
LAYERS = 4
CLASS_LAYERS = 2
HIDDEN = 128
PAIR_WIDTHS = (4, 16, 16, HEADS)
CLASSES = 10
# What logarithms are kept from; the paper's value.
_SMALLEST = 1e-8


def _pair_features(builder: GraphBuilder, kinematics: str) -> str:
    """[N, 4, P, P]: ln Δ, ln kT, ln z, ln m² of each pair."""
    scope = "/pairs"

    def constant(value: float) -> str:
        return builder.constant(scope, value, np.float32)

    def both(row: int) -> tuple[str, str]:
        bounds = [builder.constant(scope, [value]) for value in (row, row + 1, 1)]
        one = builder.op("Slice", [kinematics, *bounds], scope)
        return (
            builder.op("Unsqueeze", [one, builder.constant(scope, [3])], scope),
            builder.op("Unsqueeze", [one, builder.constant(scope, [2])], scope),
        )

    def logarithm(value: str) -> str:
        clipped = builder.op("Clip", [value, constant(_SMALLEST), ""], scope)
        return builder.op("Log", [clipped], scope)

    pt_i, pt_j = (builder.op("Exp", [value], scope) for value in both(0))
    rapidity = builder.op("Sub", list(both(1)), scope)
    azimuth = builder.op("Sub", list(both(2)), scope)
    squares = [builder.op("Mul", [value, value], scope) for value in (rapidity, azimuth)]
    delta = builder.op("Sqrt", [builder.op("Add", squares, scope)], scope)
    smaller = builder.op("Min", [pt_i, pt_j], scope)
    kt = builder.op("Mul", [smaller, delta], scope)
    z = builder.op("Div", [smaller, builder.op("Add", [pt_i, pt_j], scope)], scope)
    # cosh(y) = (exp(y) + exp(-y)) / 2, as exporters write it.
    grow = builder.op("Exp", [rapidity], scope)
    shrink = builder.op("Exp", [builder.op("Neg", [rapidity], scope)], scope)
    doubled = builder.op("Add", [grow, shrink], scope)
    cosine = builder.op("Cos", [azimuth], scope)
    gap = builder.op("Sub", [doubled, builder.op("Mul", [cosine, constant(2.0)], scope)], scope)
    mass = builder.op("Mul", [builder.op("Mul", [pt_i, pt_j], scope), gap], scope)
    logs = [logarithm(value) for value in (delta, kt, z, mass)]
    return builder.op("Concat", logs, scope, axis=1)


def _pair_bias(builder: GraphBuilder, kinematics: str) -> str:
    """[N, heads, P, P]: 1x1 convolutions of the pair features."""
    value = _pair_features(builder, kinematics)
    for layer in range(len(PAIR_WIDTHS) - 1):
        value = graph_builder.convolution(
            builder,
            value,
            f"pairs.{layer}",
            kernel=(1, 1),
            strides=(1, 1),
            pads=(0,) * 4,
            bias=True,
        )
        if layer + 2 < len(PAIR_WIDTHS):
            value = graph_builder.batch_normalization(builder, value, f"pairs.bn{layer}")
            value = attention.gelu(builder, value, f"/pairs/gelu.{layer}")
    return value


def _parameters(random: np.random.Generator) -> dict[str, graph_builder.Array32]:
    parameters = graph_builder.linear_parameters(random, "embed.0", FEATURES, HIDDEN)
    parameters |= graph_builder.linear_parameters(random, "embed.1", HIDDEN, WIDTH)
    parameters |= graph_builder.normalization_parameters(random, "embed.norm", WIDTH)
    for layer in range(LAYERS):
        parameters |= attention.block_parameters(random, f"layers.{layer}", WIDTH, HIDDEN)
    for layer in range(CLASS_LAYERS):
        parameters |= attention.block_parameters(random, f"class_layers.{layer}", WIDTH, HIDDEN)
    parameters["token"] = random.standard_normal((1, 1, WIDTH)).astype(np.float32)
    parameters |= graph_builder.normalization_parameters(random, "norm", WIDTH)
    parameters |= graph_builder.linear_parameters(random, "fc", WIDTH, CLASSES)
    for layer, (inputs, outputs) in enumerate(zip(PAIR_WIDTHS, PAIR_WIDTHS[1:], strict=False)):
        weight = random.standard_normal((outputs, inputs, 1, 1)) * np.sqrt(1.0 / inputs)
        parameters[f"pairs.{layer}.weight"] = weight.astype(np.float32)
        parameters[f"pairs.{layer}.bias"] = random.uniform(-0.2, 0.2, outputs).astype(np.float32)
        parameters |= graph_builder.normalization_parameters(
            random, f"pairs.bn{layer}", outputs, statistics=True
        )
    return parameters


def make() -> onnx.ModelProto:
    """Returns the model of `particle_transformer.onnx`."""
    builder = GraphBuilder("particle_transformer", _parameters(np.random.default_rng(SEED)))
    features = builder.input("features", ["N", FEATURES, "P"])
    kinematics = builder.input("kinematics", ["N", 3, "P"])
    mask = builder.input("mask", ["N", 1, "P"])

    squeezed = builder.op("Squeeze", [mask, builder.constant("", [1])], "")
    absent = attention.key_bias(builder, squeezed, "")
    bias = builder.op("Add", [_pair_bias(builder, kinematics), absent], "/pairs")

    value = builder.op("Transpose", [features], "", perm=[0, 2, 1])
    value = attention.gelu(builder, graph_builder.linear(builder, value, "embed.0"), "/embed.0")
    value = graph_builder.linear(builder, value, "embed.1")
    value = graph_builder.layer_normalization(builder, value, "embed.norm")
    for layer in range(LAYERS):
        value = attention.encoder_block(builder, value, f"layers.{layer}", HEADS, WIDTH, bias)

    # One class token a jet, and what it attends to: itself and the particles.
    shape = builder.op("Shape", [value], "")
    batch = builder.op("Gather", [shape, builder.constant("", [0])], "", axis=0)
    extents = builder.op("Concat", [batch, builder.constant("", [1, WIDTH])], "", axis=0)
    token = builder.op("Expand", [builder.parameter("token"), extents], "")
    own = builder.op(
        "Expand",
        [
            builder.constant("", np.zeros((1, 1, 1, 1)), np.float32),
            builder.op("Concat", [batch, builder.constant("", [1, 1, 1])], "", axis=0),
        ],
        "",
    )
    class_bias = builder.op("Concat", [own, absent], "", axis=3)
    for layer in range(CLASS_LAYERS):
        module = f"class_layers.{layer}"
        memory = builder.op("Concat", [token, value], f"/{module}", axis=1)
        token = attention.encoder_block(
            builder, token, module, HEADS, WIDTH, class_bias, memory=memory
        )
    token = graph_builder.layer_normalization(builder, token, "norm")
    token = builder.op("Squeeze", [token, builder.constant("", [1])], "")
    logits = graph_builder.linear(builder, token, "fc")
    builder.output("probabilities", builder.op("Softmax", [logits], "", axis=-1), ["N", CLASSES])
    return builder.model("A small Particle Transformer (arXiv:2202.03772).")


if __name__ == "__main__":
    graph_builder.run(make)
