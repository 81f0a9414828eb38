"""Graphs that gather many operators each, to be compiled and run on every backend.

Every operator's result is a row of the output, so that a mistake in one shows in its row. Sizes
are symbolic. Inputs are moved into an operator's domain by the graph itself.

    python -m tests.operators.models --output=FOLDER
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from absl import app, flags
from onnx import helper, numpy_helper

_OUTPUT = flags.DEFINE_string("output", None, "Folder for the models.", required=True)


class _Graph:
    """A graph under construction."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._rows: list[str] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: int, shape: Sequence[int | str]) -> str:
        """An input of the model."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """A constant of the model."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def node(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first output."""
        name = f"{op_type}{len(self._nodes)}"
        names = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self._nodes.append(helper.make_node(op_type, list(inputs), names, name=name, **attributes))
        return name

    def row(self, value: str) -> None:
        """Makes [N, M] a row of the next output."""
        self._rows.append(value)

    def rows(self, name: str, dtype: int) -> None:
        """An output [rows, N, M] of the rows so far."""
        axes = self.constant([0], "int64")
        stacked = [self.node("Unsqueeze", row, axes) for row in self._rows]
        self._rows = []
        self.output(name, self.node("Concat", *stacked, axis=0), dtype, [len(stacked), "N", "M"])

    def output(self, name: str, value: str, dtype: int, shape: Sequence[int | str]) -> None:
        """An output of the model."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))

    def model(self) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(
            self._nodes, "operators", self._inputs, self._outputs, self._constants
        )
        imports = [helper.make_opsetid("", self._opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        return model


def _elementwise() -> onnx.ModelProto:
    g = _Graph(opset=21)
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", "M"])
    y = g.input("y", onnx.TensorProto.FLOAT, ["M"])
    i = g.input("i", onnx.TensorProto.INT64, ["N", "M"])
    one, two = g.constant(1), g.constant(2)
    unit = g.node("Tanh", x)
    above_one = g.node("Add", g.node("Abs", x), one)
    for op_type in ("Sin", "Cos", "Sinh", "Cosh", "Atan", "Asinh", "Ceil", "Floor", "Round"):
        g.row(g.node(op_type, x))
    for op_type in ("Asin", "Acos", "Atanh", "Tan"):
        g.row(g.node(op_type, unit))
    for op_type in ("Acosh", "Reciprocal", "Sqrt", "Log"):
        g.row(g.node(op_type, above_one))
    for op_type in ("Sign", "Softplus", "Softsign", "Mish", "HardSwish", "Sigmoid", "Exp", "Erf"):
        g.row(g.node(op_type, x))
    for op_type in ("Elu", "Selu", "Celu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid"):
        g.row(g.node(op_type, x))
        g.row(g.node(op_type, x, alpha=0.7))
    g.row(g.node("Gelu", x))
    g.row(g.node("Gelu", x, approximate="tanh"))
    g.row(g.node("Shrink", x, lambd=0.4, bias=0.1))
    g.row(g.node("PRelu", x, y))
    g.row(g.node("Mod", x, above_one, fmod=1))
    g.row(g.node("Pow", above_one, y))
    g.row(g.node("Pow", x, two))
    g.row(g.node("Pow", x, g.constant(3, "int64")))
    g.row(g.node("Clip", x, g.constant(-0.5), g.constant(0.25)))
    g.row(g.node("Clip", x, "", g.constant(0.25)))
    g.row(g.node("Max", x, y, one))
    g.row(g.node("Min", x, y, one))
    g.row(g.node("Mean", x, y, one))
    g.rows("floats", onnx.TensorProto.FLOAT)

    three = g.constant(3, "int64")
    g.row(g.node("Mod", i, g.constant(-3, "int64")))
    g.row(g.node("Mod", g.node("Neg", i), three, fmod=1))
    g.row(g.node("BitwiseAnd", i, three))
    g.row(g.node("BitwiseOr", i, three))
    g.row(g.node("BitwiseXor", i, three))
    g.row(g.node("BitwiseNot", i))
    g.row(g.node("Sign", g.node("Sub", i, three)))
    g.row(g.node("Min", i, three, g.constant([-1], "int64")))
    g.row(g.node("Pow", i, three))
    unsigned = g.node("Cast", i, to=onnx.TensorProto.UINT32)
    for direction in ("LEFT", "RIGHT"):
        shifted = g.node("BitShift", unsigned, g.constant(2, "uint32"), direction=direction)
        g.row(g.node("Cast", shifted, to=onnx.TensorProto.INT64))
    g.rows("integers", onnx.TensorProto.INT64)

    positive = g.node("Greater", x, y)
    large = g.node("GreaterOrEqual", x, one)
    g.row(positive)
    g.row(large)
    g.row(g.node("LessOrEqual", x, y))
    g.row(g.node("Or", positive, large))
    g.row(g.node("Xor", positive, large))
    g.row(g.node("Not", large))
    g.row(g.node("IsNaN", g.node("Log", x)))
    g.row(g.node("IsInf", g.node("Div", x, g.node("Relu", x)), detect_negative=1))
    g.rows("booleans", onnx.TensorProto.BOOL)
    return g.model()


def _normalizations() -> onnx.ModelProto:
    """Along the last axis, whose rows are contiguous, and along others."""
    g = _Graph(opset=21)
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", 6, "M"])
    scale = g.input("scale", onnx.TensorProto.FLOAT, ["M"])
    bias = g.input("bias", onnx.TensorProto.FLOAT, ["M"])
    channels = [g.constant(np.linspace(0.5, 2, 6)) for _ in range(2)]
    mean = g.constant(np.linspace(-1, 1, 6))
    shape: list[int | str] = ["N", 6, "M"]

    def out(name: str, value: str, extents: Sequence[int | str] = shape) -> None:
        g.output(name, value, onnx.TensorProto.FLOAT, extents)

    layer = g.node("LayerNormalization", x, scale, bias, outputs=3, epsilon=1e-3)
    out("layer", layer)
    out("layer_mean", f"{layer}_1", ["N", 6, 1])
    out("layer_deviation", f"{layer}_2", ["N", 6, 1])
    out("layer_without_bias", g.node("LayerNormalization", x, scale, axis=1, epsilon=1e-3))
    out("instance", g.node("InstanceNormalization", x, *channels, epsilon=1e-2))
    out("group", g.node("GroupNormalization", x, *channels, num_groups=3, epsilon=1e-2))
    out("lp1", g.node("LpNormalization", x, axis=1, p=1))
    out("lp2", g.node("LpNormalization", x, axis=-1, p=2))
    four = g.node("Unsqueeze", x, g.constant([3], "int64"))
    out("moments", g.node("MeanVarianceNormalization", four, axes=[0, 1]), [*shape, 1])
    out("response", g.node("LRN", four, size=3, alpha=0.2, beta=0.6), [*shape, 1])
    computed = g.node("Abs", mean)
    out("batch", g.node("BatchNormalization", x, *channels, mean, computed))
    out("softmax", g.node("Softmax", x, axis=1))
    out("log_softmax", g.node("LogSoftmax", x, axis=-1))
    out("hardmax", g.node("Hardmax", x, axis=1))
    return g.model()


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "elementwise": _elementwise,
    "normalizations": _normalizations,
}


def main(argv: Sequence[str]) -> None:
    """Writes every model."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for name, make in MODELS.items():
        onnx.save(make(), str(pathlib.Path(_OUTPUT.value) / f"{name}.onnx"))


if __name__ == "__main__":
    app.run(main)
