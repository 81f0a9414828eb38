"""Makes `cnn.onnx`: a small 2-D convolutional network on calorimeter images, symbolic batch.

    python -m models.cnn --output=models/cnn.onnx

Input image[N, 1, 32, 32] (energy per cell, in units in which the values are of order 1), output
probabilities[N, 3], all fp32: a padded 3×3 convolution with batch normalisation, ReLU and 2×2 max
pooling, a 3×3 convolution of stride 2 with ReLU, two fully connected layers and a softmax. The
weights are seeded, not trained.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx

from models import graph_builder

SEED = 32
SIDE = 32
CHANNELS = (1, 8, 16)
# Pooling and the second convolution each halve the image.
WIDTHS = (CHANNELS[-1] * (SIDE // 4) ** 2, 24, 3)


def _parameters(random: np.random.Generator) -> dict[str, graph_builder.Array32]:
    parameters = {}
    for index, (inputs, outputs) in enumerate(itertools.pairwise(CHANNELS)):
        weight = random.standard_normal((outputs, inputs, 3, 3)) * np.sqrt(2.0 / (9 * inputs))
        parameters[f"convs.{index}.weight"] = weight.astype(np.float32)
        parameters[f"convs.{index}.bias"] = random.uniform(-0.2, 0.2, outputs).astype(np.float32)
    for part, low, high in (
        ("weight", 0.8, 1.2),
        ("bias", -0.2, 0.2),
        ("running_mean", -0.2, 0.2),
        ("running_var", 0.5, 1.5),
    ):
        parameters[f"bns.0.{part}"] = random.uniform(low, high, CHANNELS[1]).astype(np.float32)
    for index, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS)):
        weight = random.standard_normal((outputs, inputs)) * np.sqrt(2.0 / inputs)
        parameters[f"fc.{index}.weight"] = weight.astype(np.float32)
        parameters[f"fc.{index}.bias"] = random.uniform(-0.2, 0.2, outputs).astype(np.float32)
    return parameters


def make() -> onnx.ModelProto:
    """Returns the model of `cnn.onnx`."""
    builder = graph_builder.GraphBuilder("cnn", _parameters(np.random.default_rng(SEED)))
    value = builder.input("image", ["N", CHANNELS[0], SIDE, SIDE])
    value = graph_builder.convolution(
        builder, value, "convs.0", kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1), bias=True
    )
    value = graph_builder.batch_normalization(builder, value, "bns.0")
    value = builder.op("Relu", [value], "/activations.0")
    value = builder.op(
        "MaxPool", [value], "/pool", kernel_shape=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0)
    )
    value = graph_builder.convolution(
        builder, value, "convs.1", kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), bias=True
    )
    value = builder.op("Relu", [value], "/activations.1")
    value = builder.op("Flatten", [value], "", axis=1)
    value = graph_builder.fully_connected(builder, value, "fc.0")
    value = builder.op("Relu", [value], "/activations.2")
    value = graph_builder.fully_connected(builder, value, "fc.1")
    value = builder.op("Softmax", [value], "", axis=1)
    builder.output("probabilities", value, ["N", WIDTHS[-1]])
    return builder.model("A convolutional network on 32×32 images.")


if __name__ == "__main__":
    graph_builder.run(make)
