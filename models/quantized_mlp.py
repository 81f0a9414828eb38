"""Makes `quantized_mlp.onnx`: a multilayer perceptron in 8-bit integers.

    python -m models.quantized_mlp --output=models/quantized_mlp.onnx

Input features[N, 16], output logits[N, 5], fp32. Between a QuantizeLinear and a DequantizeLinear
are three QLinearMatMul with int8 weights, one scale a layer; results are uint8, and those of
the first two have the zero point 0, so that rounding into the type is a ReLU.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import onnx

from models import graph_builder

SEED = 8
WIDTHS = (16, 64, 32, 5)
# Of the input and of each layer's result.
_SCALES = (0.03, 0.02, 0.02, 0.03)
_ZEROS = (128, 0, 0, 128)
_WEIGHT_RANGE = 3.0


def make() -> onnx.ModelProto:
    """Returns the model of `quantized_mlp.onnx`."""
    random = np.random.default_rng(SEED)
    parameters: dict[str, npt.NDArray[np.generic]] = {}
    for layer, (scale, zero) in enumerate(zip(_SCALES, _ZEROS, strict=True)):
        parameters[f"values.{layer}.scale"] = np.array(scale, np.float32)
        parameters[f"values.{layer}.zero_point"] = np.array(zero, np.uint8)
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS)):
        weight = random.standard_normal((inputs, outputs)) * np.sqrt(2.0 / inputs)
        scale = _WEIGHT_RANGE * np.sqrt(2.0 / inputs) / 127
        rounded = np.clip(np.round(weight / scale), -127, 127)
        parameters[f"layers.{layer}.weight"] = rounded.astype(np.int8)
        parameters[f"layers.{layer}.scale"] = np.array(scale, np.float32)
        parameters[f"layers.{layer}.zero_point"] = np.array(0, np.int8)

    builder = graph_builder.GraphBuilder("quantized_mlp", parameters)

    def scaled(name: str) -> list[str]:
        return [builder.parameter(f"{name}.{part}") for part in ("scale", "zero_point")]

    value = builder.input("features", ["N", WIDTHS[0]])
    value = builder.op("QuantizeLinear", [value, *scaled("values.0")], "")
    for layer in range(len(WIDTHS) - 1):
        weight = builder.parameter(f"layers.{layer}.weight")
        value = builder.op(
            "QLinearMatMul",
            [
                value,
                *scaled(f"values.{layer}"),
                weight,
                *scaled(f"layers.{layer}"),
                *scaled(f"values.{layer + 1}"),
            ],
            f"/layers.{layer}",
        )
    value = builder.op("DequantizeLinear", [value, *scaled(f"values.{len(WIDTHS) - 1}")], "")
    builder.output("logits", value, ["N", WIDTHS[-1]])
    return builder.model("A multilayer perceptron in 8-bit integers.")


if __name__ == "__main__":
    graph_builder.run(make)
