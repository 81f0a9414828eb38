"""Makes `resnet.onnx`: a narrow ResNet-18 on calorimeter images.

    python -m models.resnet --output=models/resnet.onnx

After K. He et al., arXiv:1512.03385. Input image[N, 3, H, W], output probabilities[N, 4], fp32: a
3×3 convolution, four stages of two residual blocks with 8, 16, 32 and 64 channels, the mean over
the image, one fully connected layer, a softmax. Height and width are symbolic too.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import graph_builder
from models.graph_builder import GraphBuilder

SEED = 1512
STAGES = (8, 16, 32, 64)
CLASSES = 4


class _Network:
    """The graph, its parameters made where a layer is added."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(SEED)
        self.parameters: dict[str, graph_builder.Array32] = {}
        self.builder = GraphBuilder("resnet", self.parameters)

    def convolution(
        self, value: str, module: str, inputs: int, outputs: int, kernel: int, stride: int
    ) -> str:
        """A convolution without bias, and its batch normalisation."""
        weight = self.random.standard_normal((outputs, inputs, kernel, kernel))
        weight *= np.sqrt(2.0 / (inputs * kernel**2))
        self.parameters[f"{module}.weight"] = weight.astype(np.float32)
        self.parameters.update(
            graph_builder.normalization_parameters(
                self.random, f"{module}.bn", outputs, statistics=True
            )
        )
        value = graph_builder.convolution(
            self.builder,
            value,
            module,
            kernel=(kernel, kernel),
            strides=(stride, stride),
            pads=(kernel // 2,) * 4,
        )
        return graph_builder.batch_normalization(self.builder, value, f"{module}.bn")

    def block(self, value: str, module: str, inputs: int, outputs: int, stride: int) -> str:
        """Two convolutions and what bypasses them."""
        scope = "/" + graph_builder.module_path(module)
        inner = self.convolution(value, f"{module}.conv1", inputs, outputs, 3, stride)
        inner = self.builder.op("Relu", [inner], scope)
        inner = self.convolution(inner, f"{module}.conv2", outputs, outputs, 3, 1)
        if stride != 1:
            value = self.convolution(value, f"{module}.down", inputs, outputs, 1, stride)
        return self.builder.op("Relu", [self.builder.op("Add", [inner, value], scope)], scope)


def make() -> onnx.ModelProto:
    """Returns the model of `resnet.onnx`."""
    network = _Network()
    builder = network.builder
    value = builder.input("image", ["N", 3, "H", "W"])
    value = network.convolution(value, "stem", 3, STAGES[0], 3, 1)
    value = builder.op("Relu", [value], "/stem")
    inputs = STAGES[0]
    for stage, outputs in enumerate(STAGES):
        for block in (0, 1):
            stride = 2 if stage > 0 and block == 0 else 1
            value = network.block(value, f"stages.{stage}.{block}", inputs, outputs, stride)
            inputs = outputs
    value = builder.op("GlobalAveragePool", [value], "")
    value = builder.op("Flatten", [value], "", axis=1)
    network.parameters.update(
        graph_builder.linear_parameters(network.random, "fc", STAGES[-1], CLASSES)
    )
    value = graph_builder.linear(builder, value, "fc")
    builder.output("probabilities", builder.op("Softmax", [value], "", axis=-1), ["N", CLASSES])
    return builder.model("A narrow ResNet-18 (arXiv:1512.03385).")


if __name__ == "__main__":
    graph_builder.run(make)
