"""Makes `unet.onnx`: a one-dimensional U-Net that finds pulses in signals of any length.

    python -m models.unet --output=models/unet.onnx

After O. Ronneberger, P. Fischer, T. Brox, arXiv:1505.04597. Input signal[N, 2, L], output
pulse[N, 1, L], fp32, L at least 4. Two levels down by max pooling; up again by a transposed
convolution that is padded to the length it has to meet, then by linear interpolation to it.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import graph_builder
from models.graph_builder import GraphBuilder

SEED = 1505
_CONVOLUTIONS = {
    "down.0": (2, 8),
    "down.1": (8, 16),
    "bottom": (16, 32),
    "up.1": (32, 16),
    "up.0": (24, 8),
}


def _extent(builder: GraphBuilder, value: str, scope: str) -> str:
    """The length of value[N, C, L], as an int64[1]."""
    shape = builder.op("Shape", [value], scope)
    return builder.op("Gather", [shape, builder.constant(scope, [2])], scope, axis=0)


def make() -> onnx.ModelProto:
    """Returns the model of `unet.onnx`."""
    random = np.random.default_rng(SEED)
    parameters: dict[str, graph_builder.Array32] = {}
    for module, (inputs, outputs) in (*_CONVOLUTIONS.items(), ("head", (8, 1))):
        weight = random.standard_normal((outputs, inputs, 5)) * np.sqrt(2.0 / (5 * inputs))
        parameters[f"{module}.weight"] = weight.astype(np.float32)
        parameters[f"{module}.bias"] = random.uniform(-0.2, 0.2, outputs).astype(np.float32)
    transposed = random.standard_normal((32, 16, 2)) * np.sqrt(1.0 / 32)
    parameters["widen.weight"] = transposed.astype(np.float32)
    parameters["widen.bias"] = random.uniform(-0.2, 0.2, 16).astype(np.float32)

    builder = GraphBuilder("unet", parameters)

    def convolution(value: str, module: str, activate: bool = True) -> str:
        value = graph_builder.convolution(
            builder, value, module, kernel=(5,), strides=(1,), pads=(2, 2), bias=True
        )
        scope = "/" + graph_builder.module_path(module)
        return builder.op("LeakyRelu", [value], scope, alpha=0.1) if activate else value

    def halve(value: str, level: int) -> str:
        return builder.op("MaxPool", [value], f"/pool.{level}", kernel_shape=(2,), strides=(2,))

    first = convolution(builder.input("signal", ["N", 2, "L"]), "down.0")
    second = convolution(halve(first, 0), "down.1")
    bottom = convolution(halve(second, 1), "bottom")

    widened = builder.op(
        "ConvTranspose",
        [bottom, builder.parameter("widen.weight"), builder.parameter("widen.bias")],
        "/widen",
        kernel_shape=(2,),
        strides=(2,),
    )
    missing = builder.op(
        "Sub", [_extent(builder, second, "/widen"), _extent(builder, widened, "/widen")], "/widen"
    )
    pads = builder.op("Concat", [builder.constant("/widen", [0] * 5), missing], "/widen", axis=0)
    widened = builder.op("Pad", [widened, pads], "/widen", mode="constant")
    joined = builder.op("Concat", [second, widened], "/up.1", axis=1)
    middle = convolution(joined, "up.1")

    sizes = builder.op(
        "Concat",
        [
            builder.op(
                "Slice",
                [
                    builder.op("Shape", [middle], "/resize"),
                    builder.constant("/resize", [0]),
                    builder.constant("/resize", [2]),
                ],
                "/resize",
            ),
            _extent(builder, first, "/resize"),
        ],
        "/resize",
        axis=0,
    )
    resized = builder.op(
        "Resize",
        [middle, "", "", sizes],
        "/resize",
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    top = convolution(builder.op("Concat", [first, resized], "/up.0", axis=1), "up.0")
    pulse = builder.op("Sigmoid", [convolution(top, "head", activate=False)], "")
    builder.output("pulse", pulse, ["N", 1, "L"])
    return builder.model("A one-dimensional U-Net.")


if __name__ == "__main__":
    graph_builder.run(make)
