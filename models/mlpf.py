"""Makes `mlpf.onnx`: particle-flow reconstruction in the manner of MLPF, any number of elements.

    python -m models.mlpf --output=models/mlpf.onnx

After J. Pata et al., arXiv:2101.08578 and 2309.06782. Inputs elements[N, E, 12] (tracks and
clusters) and mask[N, E], outputs of each element: class_probabilities[N, E, 6], charge[N, E, 3]
(a softmax) and momentum[N, E, 5], added to the element's first five features. Two attention blocks
of 64 channels and eight heads.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import attention, graph_builder

SEED = 2101
FEATURES = 12
WIDTH = 64
HEADS = 8
HIDDEN = 128
OUTPUTS = {"class": 6, "charge": 3, "momentum": 5}


def make() -> onnx.ModelProto:
    """Returns the model of `mlpf.onnx`."""
    random = np.random.default_rng(SEED)
    parameters = graph_builder.linear_parameters(random, "embed.0", FEATURES, HIDDEN)
    parameters |= graph_builder.linear_parameters(random, "embed.1", HIDDEN, WIDTH)
    for layer in (0, 1):
        parameters |= attention.block_parameters(random, f"layers.{layer}", WIDTH, HIDDEN)
    for head, width in OUTPUTS.items():
        parameters |= graph_builder.linear_parameters(random, f"{head}.0", WIDTH + FEATURES, HIDDEN)
        parameters |= graph_builder.linear_parameters(random, f"{head}.1", HIDDEN, width)

    builder = graph_builder.GraphBuilder("mlpf", parameters)
    elements = builder.input("elements", ["N", "E", FEATURES])
    mask = builder.input("mask", ["N", "E"])
    bias = attention.key_bias(builder, mask, "")
    present = builder.op("Unsqueeze", [mask, builder.constant("", [-1])], "")

    def network(value: str, module: str) -> str:
        value = graph_builder.linear(builder, value, f"{module}.0")
        value = builder.op("Elu", [value], f"/{module}", alpha=1.0)
        return graph_builder.linear(builder, value, f"{module}.1")

    value = network(elements, "embed")
    for layer in (0, 1):
        value = attention.encoder_block(builder, value, f"layers.{layer}", HEADS, WIDTH, bias)
    joined = builder.op("Concat", [value, elements], "", axis=-1)
    for head, name in (("class", "class_probabilities"), ("charge", "charge")):
        probabilities = builder.op("Softmax", [network(joined, head)], f"/{head}", axis=-1)
        kept = builder.op("Mul", [probabilities, present], f"/{head}")
        builder.output(name, kept, ["N", "E", OUTPUTS[head]])
    parts = builder.constant("", [OUTPUTS["momentum"], FEATURES - 5])
    first = builder.op("Split", [elements, parts], "", output_count=2, axis=-1)
    momentum = builder.op("Add", [network(joined, "momentum"), first], "/momentum")
    kept = builder.op("Mul", [momentum, present], "/momentum")
    builder.output("momentum", kept, ["N", "E", OUTPUTS["momentum"]])
    return builder.model("Particle-flow reconstruction in the manner of MLPF.")


if __name__ == "__main__":
    graph_builder.run(make)
