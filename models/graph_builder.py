"""Builds ONNX graphs node by node, with the names that PyTorch's exporter would give.

A node is named after its scope and its operator (`/edge_convs.0/convs.0/Conv`, then `Conv_1` where
a scope has a second one), a value after the node that makes it (`…/Conv_output_0`), a parameter
after its module (`edge_convs.0.convs.0.weight`).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import onnx
from absl import app, flags
from onnx import helper, numpy_helper

OPSET = 18
IR_VERSION = 8
# ONNX's operators for classical machine learning.
ML = "ai.onnx.ml"
ML_OPSET = 3
# Operators of this project; docs/packed_attention.md.
SOFIE = "sofie"
SOFIE_OPSET = 1

Array32 = npt.NDArray[np.float32]
# An ONNX attribute as Python gives it to `onnx.helper.make_node`.
Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str] | onnx.TensorProto
# The extents of a tensor: a number, or the name of a symbol.
Shape = Sequence[int | str]


class GraphBuilder:
    """Collects nodes and parameters and makes a checked model of them."""

    def __init__(self, name: str, parameters: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Starts an empty graph whose `parameter` calls take their arrays from `parameters`."""
        self._name = name
        self._parameters = parameters
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._uses: dict[str, int] = {}

    def input(self, name: str, shape: Shape, dtype: npt.DTypeLike = np.float32) -> str:
        """Declares a graph input."""
        self._inputs.append(helper.make_tensor_value_info(name, _element_type(dtype), shape))
        return name

    def parameter(self, name: str) -> str:
        """Makes an initializer of the array of that name."""
        self._initializers[name] = numpy_helper.from_array(self._parameters[name], name)
        return name

    def constant(self, scope: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> str:
        """Adds a Constant node, as exporters do for operands such as axes and shapes."""
        tensor = numpy_helper.from_array(np.asarray(value, dtype))
        return self.op("Constant", [], scope, value=tensor)

    def op(
        self,
        op_type: str,
        inputs: Sequence[str],
        scope: str,
        *,
        output: int = 0,
        output_count: int = 1,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """Adds a node and returns the name of its output number `output` of `output_count`."""
        stem = f"{scope}/{op_type}"
        use = self._uses.get(stem, 0)
        self._uses[stem] = use + 1
        name = f"{stem}_{use}" if use else stem
        outputs = [f"{name}_output_{i}" for i in range(output_count)]
        node = helper.make_node(op_type, inputs, outputs, name, domain=domain or None)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in sorted(attributes.items()))
        self._nodes.append(node)
        return outputs[output]

    def output(
        self, name: str, value: str, shape: Shape, dtype: npt.DTypeLike = np.float32
    ) -> None:
        """Declares `value`, which no node reads, as the graph output `name`."""
        for node in self._nodes:
            node.output[:] = [name if output == value else output for output in node.output]
        self._outputs.append(helper.make_tensor_value_info(name, _element_type(dtype), shape))

    def model(self, documentation: str) -> onnx.ModelProto:
        """Returns the model, checked.

        It carries no inferred shapes: ONNX's inference gives equal extents different names.

        Raises:
          onnx.checker.ValidationError: the graph breaks a rule of ONNX.
          onnx.shape_inference.InferenceError: shapes or types contradict each other.
        """
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, list(self._initializers.values())
        )
        model = helper.make_model(
            graph,
            producer_name="sofie/models",
            opset_imports=[
                helper.make_opsetid("", OPSET),
                *(
                    helper.make_opsetid(domain, version)
                    for domain, version in ((ML, ML_OPSET), (SOFIE, SOFIE_OPSET))
                    if any(node.domain == domain for node in self._nodes)
                ),
            ],
            ir_version=IR_VERSION,
            doc_string=documentation,
        )
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return model


def _element_type(dtype: npt.DTypeLike) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def linear(builder: GraphBuilder, value: str, module: str) -> str:
    """Adds `value @ weight + bias` on the last axis, for a weight [inputs, outputs]."""
    scope = "/" + module_path(module)
    product = builder.op("MatMul", [value, builder.parameter(f"{module}.weight")], scope)
    return builder.op("Add", [product, builder.parameter(f"{module}.bias")], scope)


def standardisation(
    builder: GraphBuilder,
    value: str,
    scope: str,
    *,
    centres: Sequence[float],
    scales: Sequence[float],
    limit: float,
) -> str:
    """Adds (value - centre) / scale, limited to ±limit, for value[N, channels, any]."""

    def column(numbers: Sequence[float]) -> str:
        return builder.constant(scope, np.reshape(numbers, (1, -1, 1)), np.float32)

    value = builder.op("Sub", [value, column(centres)], scope)
    value = builder.op("Div", [value, column(scales)], scope)
    limits = [builder.constant(scope, bound, np.float32) for bound in (-limit, limit)]
    return builder.op("Clip", [value, *limits], scope)


def layer_normalization(builder: GraphBuilder, value: str, module: str) -> str:
    """Adds a LayerNormalization over the last axis with the affine map of `module`."""
    return builder.op(
        "LayerNormalization",
        [value, builder.parameter(f"{module}.weight"), builder.parameter(f"{module}.bias")],
        "/" + module_path(module),
        axis=-1,
        epsilon=1e-5,
    )


def linear_parameters(
    random: np.random.Generator, module: str, inputs: int, outputs: int
) -> dict[str, Array32]:
    """Seeded parameters for `linear`, scaled to keep the values' spread."""
    weight = random.standard_normal((inputs, outputs)) * np.sqrt(1.0 / inputs)
    bias = random.uniform(-0.2, 0.2, outputs)
    return {
        f"{module}.weight": weight.astype(np.float32),
        f"{module}.bias": bias.astype(np.float32),
    }


def normalization_parameters(
    random: np.random.Generator, module: str, channels: int, *, statistics: bool = False
) -> dict[str, Array32]:
    """Seeded parameters for `layer_normalization`, or with `statistics` `batch_normalization`."""
    ranges = {"weight": (0.8, 1.2), "bias": (-0.2, 0.2)}
    if statistics:
        ranges |= {"running_mean": (-0.2, 0.2), "running_var": (0.5, 1.5)}
    return {
        f"{module}.{part}": random.uniform(low, high, channels).astype(np.float32)
        for part, (low, high) in ranges.items()
    }


def batch_normalization(builder: GraphBuilder, value: str, module: str) -> str:
    """Adds a BatchNormalization with the statistics and the affine map of `module`."""
    names = [f"{module}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
    return builder.op(
        "BatchNormalization",
        [value, *(builder.parameter(name) for name in names)],
        "/" + module_path(module),
        epsilon=1e-5,
        momentum=0.9,
    )


def convolution(
    builder: GraphBuilder,
    value: str,
    module: str,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    bias: bool = False,
) -> str:
    """Adds a Conv with the weights of `module`; all pads of the axes' beginnings come first."""
    parts = ("weight", "bias") if bias else ("weight",)
    return builder.op(
        "Conv",
        [value, *(builder.parameter(f"{module}.{part}") for part in parts)],
        "/" + module_path(module),
        dilations=[1] * len(kernel),
        group=1,
        kernel_shape=kernel,
        pads=pads,
        strides=strides,
    )


def fully_connected(builder: GraphBuilder, value: str, module: str) -> str:
    """Adds a Gemm with the transposed weight [outputs, inputs] and the bias of `module`."""
    inputs = [value, builder.parameter(f"{module}.weight"), builder.parameter(f"{module}.bias")]
    return builder.op("Gemm", inputs, "/" + module_path(module), alpha=1.0, beta=1.0, transB=1)


def module_path(module: str) -> str:
    """Returns a module's place in a node's name: `edge_convs.0.sc` gives `edge_convs.0/sc`.

    A number belongs to the list before it, as in PyTorch's node names.
    """
    parts: list[str] = []
    for part in module.split("."):
        if part.isdecimal() and parts:
            parts[-1] += f".{part}"
        else:
            parts.append(part)
    return "/".join(parts)


def run(make: Callable[[], onnx.ModelProto]) -> NoReturn:
    """Runs the program that writes the model of `make` to its flag `--output`."""
    output = flags.DEFINE_string("output", None, "The ONNX file to write.", required=True)

    def main(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
        # Deterministic: a given model has one byte order.
        pathlib.Path(output.value).write_bytes(make().SerializeToString(deterministic=True))

    app.run(main)
