"""Makes `particle_transformer.onnx`: a small Particle Transformer.

    python -m models.particle_transformer --output=models/particle_transformer.onnx

After H. Qu, C. Li, S. Qian, "Particle Transformer for Jet Tagging", arXiv:2202.03772: attention
between a jet's particles with a bias from features of each pair, then class attention.

Inputs features[N, 20, P], kinematics[N, 3, P] (ln of pT in GeV, Δη and Δφ from the jet axis) and
mask[N, 1, P] (1 for particles, 0 for padding), output probabilities[N, 8], all fp32. Four blocks of
particle attention and two of class attention, 64 channels, four heads. The pair features are ln Δ,
ln kT, ln z and ln m² of two massless particles.

The features are as `training/jet_features.py` defines them; centring, scaling and limits are part
of the graph. The weights, in `particle_transformer.npz`, are trained: `training/README.md`.
"""

from __future__ import annotations

import pathlib

import numpy as np
import onnx

from models import attention, graph_builder, jet_inputs
from models.graph_builder import GraphBuilder

WIDTH = 64
HEADS = 4
LAYERS = 4
CLASS_LAYERS = 2
HIDDEN = 128
PAIR_WIDTHS = (4, 16, 16, HEADS)
CLASSES = len(jet_inputs.CLASSES)
# What logarithms are kept from; the paper's value.
SMALLEST = 1e-8


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
        clipped = builder.op("Clip", [value, constant(SMALLEST), ""], scope)
        return builder.op("Log", [clipped], scope)

    pt_i, pt_j = (builder.op("Exp", [value], scope) for value in both(0))
    rapidity = builder.op("Sub", list(both(1)), scope)
    azimuth = builder.op("Sub", list(both(2)), scope)
    squares = [builder.op("Mul", [value, value], scope) for value in (rapidity, azimuth)]
    delta = builder.op("Sqrt", [builder.op("Add", squares, scope)], scope)
    smaller = builder.op("Min", [pt_i, pt_j], scope)
    kt = builder.op("Mul", [smaller, delta], scope)
    z = builder.op("Div", [smaller, builder.op("Add", [pt_i, pt_j], scope)], scope)
    # 2 cosh(y) - 2 cos(φ), without the difference of nearly equal numbers.
    halves = [
        builder.op(kind, [builder.op("Mul", [value, constant(0.5)], scope)], scope)
        for kind, value in (("Sinh", rapidity), ("Sin", azimuth))
    ]
    squares = [builder.op("Mul", [value, value], scope) for value in halves]
    gap = builder.op("Mul", [builder.op("Add", squares, scope), constant(4.0)], scope)
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


def parameter_shapes() -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of the network."""
    shapes: dict[str, tuple[int, ...]] = {"token": (1, 1, WIDTH)}

    def linear(module: str, inputs: int, outputs: int) -> None:
        shapes[f"{module}.weight"] = (inputs, outputs)
        shapes[f"{module}.bias"] = (outputs,)

    def normalization(module: str, channels: int, *, statistics: bool = False) -> None:
        parts = ("weight", "bias", *(("running_mean", "running_var") if statistics else ()))
        shapes.update({f"{module}.{part}": (channels,) for part in parts})

    linear("embed.0", len(jet_inputs.PARTICLE_FEATURES), HIDDEN)
    linear("embed.1", HIDDEN, WIDTH)
    normalization("embed.norm", WIDTH)
    for name, count in (("layers", LAYERS), ("class_layers", CLASS_LAYERS)):
        for layer in range(count):
            module = f"{name}.{layer}"
            for part in ("query", "key", "value", "out"):
                linear(f"{module}.attention.{part}", WIDTH, WIDTH)
            linear(f"{module}.ff.0", WIDTH, HIDDEN)
            linear(f"{module}.ff.1", HIDDEN, WIDTH)
            normalization(f"{module}.norm1", WIDTH)
            normalization(f"{module}.norm2", WIDTH)
    for layer, (inputs, outputs) in enumerate(zip(PAIR_WIDTHS, PAIR_WIDTHS[1:], strict=False)):
        shapes[f"pairs.{layer}.weight"] = (outputs, inputs, 1, 1)
        shapes[f"pairs.{layer}.bias"] = (outputs,)
        if layer + 2 < len(PAIR_WIDTHS):
            normalization(f"pairs.bn{layer}", outputs, statistics=True)
    normalization("norm", WIDTH)
    linear("fc", WIDTH, CLASSES)
    return shapes


def build(parameters: dict[str, graph_builder.Array32]) -> onnx.ModelProto:
    """Returns the network with these parameters."""
    builder = GraphBuilder("particle_transformer", parameters)
    collection = jet_inputs.PARTICLE_FEATURES
    features = builder.input("features", ["N", len(collection), "P"])
    kinematics = builder.input("kinematics", ["N", 3, "P"])
    mask = builder.input("mask", ["N", 1, "P"])

    squeezed = builder.op("Squeeze", [mask, builder.constant("", [1])], "")
    absent = attention.key_bias(builder, squeezed, "")
    bias = builder.op("Add", [_pair_bias(builder, kinematics), absent], "/pairs")

    value = graph_builder.standardisation(
        builder,
        features,
        "/features",
        centres=[feature.centre for feature in collection],
        scales=[feature.scale for feature in collection],
        limit=jet_inputs.LIMIT,
    )
    value = builder.op("Transpose", [value], "", perm=[0, 2, 1])
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


def make() -> onnx.ModelProto:
    """Returns the model of `particle_transformer.onnx`."""
    with np.load(pathlib.Path(__file__).with_suffix(".npz")) as weights:
        return build(dict(weights))


if __name__ == "__main__":
    graph_builder.run(make)
