"""Makes `vae.onnx`: a variational autoencoder, as for anomaly detection in triggers.

    python -m models.vae --output=models/vae.onnx

Inputs objects[N, 57] (momenta of an event's objects) and noise[N, 8] (standard normal), outputs
reconstruction[N, 57], mean[N, 8], log_variance[N, 8] and score[N], all fp32. The score is the
Kullback-Leibler distance of the latent distribution from the normal one.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx

from models import graph_builder

SEED = 57
OBJECTS = 57
LATENT = 8
_ENCODER = (OBJECTS, 32, 16)
_DECODER = (LATENT, 16, 32, OBJECTS)


def make() -> onnx.ModelProto:
    """Returns the model of `vae.onnx`."""
    random = np.random.default_rng(SEED)
    parameters: dict[str, graph_builder.Array32] = {}
    for module, widths in (
        ("encoder", _ENCODER),
        ("decoder", _DECODER),
        ("mean", (_ENCODER[-1], LATENT)),
        ("log_variance", (_ENCODER[-1], LATENT)),
    ):
        for layer, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
            parameters |= graph_builder.linear_parameters(
                random, f"{module}.{layer}", inputs, outputs
            )
    builder = graph_builder.GraphBuilder("vae", parameters)
    value = builder.input("objects", ["N", OBJECTS])
    noise = builder.input("noise", ["N", LATENT])
    for layer in range(len(_ENCODER) - 1):
        value = graph_builder.linear(builder, value, f"encoder.{layer}")
        value = builder.op("LeakyRelu", [value], "/encoder", alpha=0.3)
    mean = graph_builder.linear(builder, value, "mean.0")
    log_variance = graph_builder.linear(builder, value, "log_variance.0")
    half = builder.constant("", 0.5, np.float32)
    deviation = builder.op("Exp", [builder.op("Mul", [log_variance, half], "")], "")
    value = builder.op("Add", [mean, builder.op("Mul", [deviation, noise], "")], "")
    for layer in range(len(_DECODER) - 1):
        value = graph_builder.linear(builder, value, f"decoder.{layer}")
        if layer + 2 < len(_DECODER):
            value = builder.op("LeakyRelu", [value], "/decoder", alpha=0.3)
    # 0.5 * sum(mean² + exp(log_variance) - 1 - log_variance)
    square = builder.op("Pow", [mean, builder.constant("", 2.0, np.float32)], "/score")
    variance = builder.op("Exp", [log_variance], "/score")
    one = builder.constant("/score", 1.0, np.float32)
    surplus = builder.op(
        "Sub", [builder.op("Sub", [variance, one], "/score"), log_variance], "/score"
    )
    total = builder.op("Add", [square, surplus], "/score")
    total = builder.op("ReduceSum", [total, builder.constant("/score", [1])], "/score", keepdims=0)
    score = builder.op("Mul", [total, half], "/score")
    identity = {
        name: builder.op("Identity", [value], f"/{name}")
        for name, value in (("mean", mean), ("log_variance", log_variance))
    }
    builder.output("reconstruction", value, ["N", OBJECTS])
    builder.output("mean", identity["mean"], ["N", LATENT])
    builder.output("log_variance", identity["log_variance"], ["N", LATENT])
    builder.output("score", score, ["N"])
    return builder.model("A variational autoencoder.")


if __name__ == "__main__":
    graph_builder.run(make)
