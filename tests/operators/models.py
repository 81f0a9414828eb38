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
    """A graph under construction.

    Args:
      opset: version of ONNX's own operators.
      domains: versions of other domains.
    """

    def __init__(self, opset: int, domains: Mapping[str, int] | None = None) -> None:
        self._versions = {"": opset, **(domains or {})}
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
        imports = [helper.make_opsetid(d, version) for d, version in self._versions.items()]
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


def _movement() -> onnx.ModelProto:
    """What moves elements; indices are made to lie inside."""
    g = _Graph(opset=24)
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", "M"])
    i = g.input("i", onnx.TensorProto.INT64, ["N", "M"])
    kind = onnx.TensorProto.FLOAT
    ends = [g.constant([k], "int64") for k in range(3)]
    shape = g.node("Shape", x)
    rows, columns = (g.node("Gather", shape, g.constant(k, "int64")) for k in range(2))
    row, column = g.node("Mod", i, rows), g.node("Mod", i, columns)
    for mode in ("constant", "edge", "reflect", "wrap"):
        pads = g.constant([0, 2, 1, 3], "int64")
        g.output(f"pad_{mode}", g.node("Pad", x, pads, mode=mode), kind, ["A", "B"])
    parts = g.node("Split", x, outputs=2, axis=1, num_outputs=2)
    g.output("split", g.node("Concat", f"{parts}_1", parts, axis=1), kind, ["N", "M"])
    steps = [g.constant(v, "int64") for v in ([-1], [-(2**31)], [1], [-2])]
    g.output("backwards", g.node("Slice", x, *steps), kind, ["N", "C"])
    g.output(
        "odd",
        g.node("Slice", x, ends[1], g.constant([2**31], "int64"), ends[1], ends[2]),
        kind,
        ["N", "D"],
    )
    g.row(g.node("GatherElements", x, row, axis=0))
    g.row(g.node("GatherElements", x, column, axis=1))
    pairs = g.node("Concat", *(g.node("Unsqueeze", k, ends[2]) for k in (row, column)), axis=2)
    g.row(g.node("GatherND", x, pairs))
    g.row(g.node("Trilu", x, upper=0))
    g.row(g.node("Trilu", x, g.constant(1, "int64")))
    lengths = g.node("ReduceMax", column, ends[1], keepdims=0)
    g.row(g.node("ReverseSequence", x, lengths, time_axis=1, batch_axis=0))
    g.row(g.node("CenterCropPad", g.node("CenterCropPad", x, g.constant([5, 9], "int64")), shape))
    for reduction in ("add", "mul", "max", "min"):
        g.row(g.node("ScatterElements", x, row, x, axis=0, reduction=reduction))
        g.row(g.node("ScatterND", x, pairs, x, reduction=reduction))
    distinct = g.node("Range", g.constant(0, "int64"), rows, g.constant(1, "int64"))
    distinct = g.node("Unsqueeze", distinct, ends[1])
    g.row(g.node("ScatterND", g.node("Neg", x), distinct, x))
    g.rows("moved", kind)
    onehot = g.node("OneHot", column, columns, g.constant([0, 1]))
    g.output("onehot", onehot, kind, ["N", "M", "E"])
    blocks = g.node(
        "Reshape", g.node("Concat", *[x] * 8, axis=1), g.constant([0, 2, 4, -1], "int64")
    )
    deep = g.node("SpaceToDepth", g.node("Concat", blocks, blocks, axis=3), blocksize=2)
    g.output("deep", deep, kind, ["N", 8, 2, "F"])
    wide = g.node("DepthToSpace", deep, blocksize=2, mode="CRD")
    g.output("wide", wide, kind, ["N", 2, 4, "G"])
    return g.model()


def _convolutions() -> onnx.ModelProto:
    """Windows of every kind over one, two and three axes."""
    g = _Graph(opset=21)
    rng = np.random.default_rng(1)
    kind = onnx.TensorProto.FLOAT
    x = g.input("x", kind, ["N", 4, "H", "W"])
    w = g.input("w", kind, ["K", 4, 2, 2])

    def weights(*shape: int) -> str:
        return g.constant(rng.uniform(-1, 1, shape))

    def out(name: str, value: str, channels: int | str = 4) -> None:
        sizes = [f"{name}{k}" for k in range(2)]
        g.output(name, value, kind, ["N", channels, *sizes])

    out("strided", g.node("Conv", x, weights(6, 4, 3, 3), weights(6), strides=[2, 1]), 6)
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        strided: dict[str, Any] = {"auto_pad": auto_pad, "strides": [2, 2]}
        out(auto_pad.lower(), g.node("Conv", x, weights(5, 4, 2, 4), **strided), 5)
    pads: dict[str, Any] = {"pads": [1, 0, 2, 1], "dilations": [2, 1]}
    out("groups", g.node("Conv", x, weights(6, 2, 3, 2), weights(6), group=2, **pads), 6)
    around: dict[str, Any] = {"pads": [1, 1, 1, 1], "group": 4}
    out(
        "depthwise", g.node("Relu", g.node("Conv", x, weights(8, 1, 3, 3), weights(8), **around)), 8
    )
    out("given", g.node("Conv", x, w), "K")
    rows = g.node("Reshape", x, g.constant([0, 4, -1], "int64"))
    line = g.node("Conv", rows, weights(3, 4, 5), weights(3), pads=[2, 2], strides=[3])
    g.output("line", line, kind, ["N", 3, "L"])
    volume = g.node("Unsqueeze", x, g.constant([1], "int64"))
    solid = g.node("Conv", volume, weights(2, 1, 3, 2, 2), pads=[1, 0, 1, 0, 1, 0])
    g.output("solid", solid, kind, ["N", 2, "S0", "S1", "S2"])
    up: dict[str, Any] = {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}
    out("transposed", g.node("ConvTranspose", x, weights(4, 3, 3, 4), weights(3), **up), 3)
    out("transposed_groups", g.node("ConvTranspose", x, weights(4, 2, 2, 3), group=2, **up), 4)
    out("transposed_depthwise", g.node("ConvTranspose", x, weights(4, 1, 2, 2), group=4), 4)
    return g.model()


def _poolings() -> onnx.ModelProto:
    g = _Graph(opset=21)
    kind = onnx.TensorProto.FLOAT
    x = g.input("x", kind, ["N", 3, "H", "W"])

    def out(name: str, value: str, dtype: int = kind) -> None:
        g.output(name, value, dtype, ["N", 3, *(f"{name}{k}" for k in range(2))])

    window: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}
    for ceil_mode in (0, 1):
        largest = g.node("MaxPool", x, outputs=2, ceil_mode=ceil_mode, **window)
        out(f"max{ceil_mode}", largest)
        out(f"max_indices{ceil_mode}", f"{largest}_1", onnx.TensorProto.INT64)
        for pads in (0, 1):
            counted = {"ceil_mode": ceil_mode, "count_include_pad": pads}
            out(f"average{ceil_mode}{pads}", g.node("AveragePool", x, **window, **counted))
    out("lower", g.node("MaxPool", x, kernel_shape=[2, 4], auto_pad="SAME_LOWER"))
    out("dilated", g.node("MaxPool", x, kernel_shape=[2, 2], dilations=[2, 1]))
    out("plain", g.node("AveragePool", x, kernel_shape=[2, 2]))
    for p in (1, 2, 3):
        out(f"norm{p}", g.node("LpPool", x, p=p, **window))
        out(f"global{p}", g.node("GlobalLpPool", x, p=p))
    halves: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pooled = g.node("MaxPool", x, outputs=2, **halves)
    out("unpooled", g.node("MaxUnpool", pooled, f"{pooled}_1", **halves))
    return g.model()


def _sampling() -> onnx.ModelProto:
    """Elements between elements."""
    g = _Graph(opset=20)
    kind = onnx.TensorProto.FLOAT
    x = g.input("x", kind, ["N", 2, "H", "W"])
    grid = g.input("grid", kind, ["N", "A", "B", 2])
    regions = g.input("regions", kind, ["R", 4])

    def out(name: str, value: str, batch: str = "N") -> None:
        g.output(name, value, kind, [batch, 2, *(f"{name}{k}" for k in range(2))])

    def resize(name: str, scales: Sequence[float], **attributes: Any) -> None:
        out(name, g.node("Resize", x, "", g.constant([1, 1, *scales]), **attributes))

    resize("repeated", [2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    resize("nearest", [1.5, 0.5])
    resize("linear", [2, 2], mode="linear")
    resize("cubic", [2, 0.5], mode="cubic", exclude_outside=1)
    tall = g.node(
        "Concat",
        *(
            g.node("Shape", v, start=a, end=a + 1)
            for v, a in ((x, 0), (x, 1), (grid, 1), (grid, 2))
        ),
        axis=0,
    )
    out("sized", g.node("Resize", x, "", "", tall, mode="linear"))
    for mode in ("nearest", "linear", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            sampled = g.node("GridSample", x, grid, mode=mode, padding_mode=padding)
            if (mode, padding) != ("cubic", "border"):  # Where ONNX Runtime goes another way.
                out(f"{mode}_{padding}", sampled)
    theta = g.constant([[[0.8, 0.3, 0.1], [-0.2, 0.9, -0.1]]])
    size = g.node("Concat", g.constant([1, 2], "int64"), g.node("Shape", x, start=2), axis=0)
    g.output("affine", g.node("AffineGrid", theta, size), kind, [1, "AH", "AW", 2])
    number = g.node("Shape", regions, end=1)
    zeros = g.constant([0], "int64")
    batches = g.node("Expand", zeros, number)
    corners = g.node("Abs", g.node("Mul", regions, g.constant([2, 3, 4, 5])))
    bins = {"output_height": 2, "output_width": 3}
    for ratio in (0, 2):
        for mode in ("avg", "max"):
            aligned = g.node(
                "RoiAlign", x, corners, batches, mode=mode, sampling_ratio=ratio, **bins
            )
            out(f"roi_{mode}{ratio}", aligned, "R")
    first = g.node("Pad", corners, g.constant([0, 1, 0, 0], "int64"))
    out("roi_pool", g.node("MaxRoiPool", x, first, pooled_shape=[2, 3]), "R")
    rows = g.node("Reshape", x, g.constant([0, 2, -1], "int64"))
    length = g.node("Shape", rows, start=2)
    image = g.node("Concat", length, g.constant([1], "int64"), axis=0)
    folded = g.node("Col2Im", rows, image, g.constant([2, 1], "int64"), pads=[1, 0, 0, 0])
    g.output("folded", folded, kind, ["N", 1, "FL", 1])
    return g.model()


def _scans_and_reductions() -> onnx.ModelProto:
    """Running sums along every axis, and every reduction."""
    g = _Graph(opset=26)
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", 6, "M"])
    i = g.input("i", onnx.TensorProto.INT64, ["N", "M"])
    positive = g.node("Abs", x)
    shape: list[int | str] = ["N", 6, "M"]
    for axis in range(3):
        place = g.constant(axis, "int64")
        for exclusive in (0, 1):
            sums = g.node("CumSum", x, place, exclusive=exclusive, reverse=(axis + exclusive) % 2)
            g.output(f"sum_{axis}_{exclusive}", sums, onnx.TensorProto.FLOAT, shape)
    unit = g.node("Tanh", positive)
    products = g.node("CumProd", unit, g.constant(1, "int64"), reverse=1)
    g.output("products", products, onnx.TensorProto.FLOAT, shape)
    last = g.constant(-1, "int64")
    g.output("integers", g.node("CumSum", i, last), onnx.TensorProto.INT64, ["N", "M"])
    for op_type in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Sum", "SumSquare"):
        for name, axes in (("last", [2]), ("middle", [1]), ("outer", [0, 2])):
            if name != "last" and op_type not in ("L2", "LogSumExp", "Max"):
                continue
            extents = [1 if a in axes else d for a, d in enumerate(shape)]
            value = g.node(f"Reduce{op_type}", positive, g.constant(axes, "int64"))
            g.output(f"{op_type}_{name}", value, onnx.TensorProto.FLOAT, extents)
    for op_type in ("ArgMax", "ArgMin"):
        value = g.node(op_type, x, axis=2, keepdims=0)
        g.output(op_type, value, onnx.TensorProto.INT64, ["N", 6])
        value = g.node(op_type, i, axis=0, keepdims=0, select_last_index=1)
        g.output(f"{op_type}_last", value, onnx.TensorProto.INT64, ["M"])
    return g.model()


def _trees() -> onnx.ModelProto:
    """A boosted regression, a classification with several classes and one with two."""
    ml = "ai.onnx.ml"
    g = _Graph(opset=21, domains={ml: 3})
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", 5])
    rng = np.random.default_rng(6)

    def forest(votes: str, targets: int, per_leaf: int) -> dict[str, Any]:
        """Trees of five levels; the nodes of a level follow those of the level above."""
        rows: dict[str, list[Any]] = {}

        def add(**row: Any) -> None:
            for key, value in row.items():
                rows.setdefault(key, []).append(value)

        for tree in range(50):
            for own in range(31):
                leaf = own >= 15
                add(
                    nodes_treeids=tree,
                    nodes_nodeids=own,
                    nodes_featureids=0 if leaf else int(rng.integers(0, 5)),
                    nodes_values=0.0 if leaf else float(rng.standard_normal()),
                    nodes_modes="LEAF" if leaf else ("BRANCH_LEQ", "BRANCH_GT")[own % 2],
                    nodes_truenodeids=0 if leaf else 2 * own + 1,
                    nodes_falsenodeids=0 if leaf else 2 * own + 2,
                )
                for target in rng.permutation(targets)[: per_leaf if leaf else 0]:
                    add(
                        **{
                            f"{votes}_treeids": tree,
                            f"{votes}_nodeids": own,
                            f"{votes}_ids": int(target),
                            f"{votes}_weights": float(rng.standard_normal()) / 5,
                        }
                    )
        return rows

    def classifier(classes: int, ids: int, per_leaf: int, transform: str) -> str:
        return g.node(
            "TreeEnsembleClassifier",
            x,
            outputs=2,
            domain=ml,
            classlabels_int64s=[3 * c - 1 for c in range(classes)],
            post_transform=transform,
            **forest("class", ids, per_leaf),
        )

    regression = g.node(
        "TreeEnsembleRegressor",
        x,
        domain=ml,
        n_targets=1,
        # Keeps the sums away from 0, where rounding is all that is left of them.
        base_values=[10.0],
        **forest("target", 1, 1),
    )
    g.output("regression", regression, onnx.TensorProto.FLOAT, ["N", 1])
    several = g.node(
        "TreeEnsembleRegressor",
        x,
        domain=ml,
        n_targets=3,
        aggregate_function="MAX",
        **forest("target", 3, 3),
    )
    g.output("several", several, onnx.TensorProto.FLOAT, ["N", 3])
    for name, classes, ids, per_leaf, transform in (
        ("multi", 4, 4, 4, "SOFTMAX"),
        ("binary", 2, 1, 1, "LOGISTIC"),
    ):
        label = classifier(classes, ids, per_leaf, transform)
        g.output(f"{name}_label", label, onnx.TensorProto.INT64, ["N"])
        g.output(f"{name}_scores", f"{label}_1", onnx.TensorProto.FLOAT, ["N", classes])
    return g.model()


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "elementwise": _elementwise,
    "normalizations": _normalizations,
    "movement": _movement,
    "convolutions": _convolutions,
    "poolings": _poolings,
    "sampling": _sampling,
    "scans_and_reductions": _scans_and_reductions,
    "trees": _trees,
}


def main(argv: Sequence[str]) -> None:
    """Writes every model."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for name, make in MODELS.items():
        onnx.save(make(), str(pathlib.Path(_OUTPUT.value) / f"{name}.onnx"))


if __name__ == "__main__":
    app.run(main)
