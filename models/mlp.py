"""Makes `mlp.onnx`: a small fully connected network with a symbolic batch.

    python -m models.mlp --output=models/mlp.onnx

Input features[N, 16], output probabilities[N, 5]: two hidden layers of 64 and 32 with ReLU and a
softmax, all fp32. The weights are seeded, not trained.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx

from models import graph_builder

SEED = 16
WIDTHS = (16, 64, 32, 5)


def make() -> onnx.ModelProto:
    """Returns the model of `mlp.onnx`."""
    random = np.random.default_rng(SEED)
    parameters = {}
    for index, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS)):
        weight = random.standard_normal((outputs, inputs)) * np.sqrt(2.0 / inputs)
        parameters[f"layers.{index}.weight"] = weight.astype(np.float32)
        parameters[f"layers.{index}.bias"] = random.uniform(-0.2, 0.2, outputs).astype(np.float32)

    builder = graph_builder.GraphBuilder("mlp", parameters)
    value = builder.input("features", ["N", WIDTHS[0]])
    last = len(WIDTHS) - 2
    for index in range(last + 1):
        value = graph_builder.fully_connected(builder, value, f"layers.{index}")
        if index < last:
            value = builder.op("Relu", [value], f"/activations.{index}")
    value = builder.op("Softmax", [value], "", axis=1)
    builder.output("probabilities", value, ["N", WIDTHS[-1]])
    return builder.model("A multilayer perceptron, 16-64-32-5.")


if __name__ == "__main__":
    graph_builder.run(make)
