"""Normalisations by a row's own statistics."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_CASES = [{"N": 3, "C": 4, "M": 5}, {"N": 1, "C": 2, "M": 1}, {"N": 2, "C": 6, "M": 40}]


def _far_from_zero(x: Array) -> Array:
    """A mean far above the deviation."""
    return x + 100


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("bias", [[], ["b"]])
@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "deviation"], ["y", "", "deviation"]])
def test_layer_normalization(axis: int, bias: list[str], outputs: list[str]) -> None:
    shape = ["N", "C", "M"]
    parameters = ["scale", *bias]
    model = graph(
        [helper.make_node("LayerNormalization", ["x", *parameters], outputs, axis=axis)],
        {"x": ("float32", shape), **{n: ("float32", shape[axis:]) for n in parameters}},
        {name: "float32" for name in outputs if name},
    )
    hold(model, _CASES, tolerance=1e-4)


def test_one_kernel_with_what_comes_before() -> None:
    nodes = [
        helper.make_node("Add", ["x", "skip"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "scale"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", ["N", "M"]), "skip": ("float32", ["N", "M"])},
        {"y": "float32"},
        {"scale": np.ones(1, np.float32)},
    )
    assert len(hold(model, _CASES, tolerance=1e-4).steps) == 1


@pytest.mark.parametrize("op_type", ["LayerNormalization", "InstanceNormalization"])
def test_a_mean_far_above_the_deviation(op_type: str) -> None:
    layer = op_type == "LayerNormalization"
    model = graph(
        [helper.make_node(op_type, ["x", "scale", "b"], ["y"])],
        {
            "x": ("float32", ["N", 3, "M"]),
            "scale": ("float32", ["M" if layer else 3]),
            "b": ("float32", ["M" if layer else 3]),
        },
        {"y": "float32"},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"].astype(np.float64)
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        scale, bias = (inputs[n] if layer else inputs[n][:, None] for n in ("scale", "b"))
        return [(normal * scale + bias).astype(np.float32)]

    hold(model, _CASES, values=_far_from_zero, reference=reference, tolerance=2e-3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rms_normalization(axis: int, dtype: str) -> None:
    shape = ["N", "C", "M"]
    model = graph(
        [helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=axis, epsilon=1e-3)],
        {"x": (dtype, shape), "scale": (dtype, shape[axis:])},
        {"y": dtype},
        opset=23,
    )
    hold(model, _CASES)


@pytest.mark.parametrize("shape", [["N", "C", "M"], ["N", "C", "M", 3], ["N", "C", 2, 2, "M"]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_instance_normalization(shape: Dims, dtype: str) -> None:
    model = graph(
        [helper.make_node("InstanceNormalization", ["x", "scale", "b"], ["y"], epsilon=1e-2)],
        {"x": (dtype, shape), "scale": (dtype, ["C"]), "b": (dtype, ["C"])},
        {"y": dtype},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("shape", [["N", 6, "M"], ["N", 6, "M", 3]])
def test_group_normalization(shape: Dims) -> None:
    groups = 3
    model = graph(
        [
            helper.make_node(
                "GroupNormalization", ["x", "scale", "b"], ["y"], num_groups=groups, epsilon=1e-2
            )
        ],
        {"x": ("float32", shape), "scale": ("float32", [6]), "b": ("float32", [6])},
        {"y": ("float32", shape)},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"].astype(np.float64)
        rows = x.reshape(len(x), groups, -1)
        normal = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-2)
        channels = (1, 6, *[1] * (x.ndim - 2))
        scale, bias = (inputs[n].reshape(channels) for n in ("scale", "b"))
        return [(normal.reshape(x.shape) * scale + bias).astype(np.float32)]

    hold(model, _CASES, reference=reference, tolerance=1e-4)


@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [0, -1]])
def test_mean_variance_normalization(axes: Sequence[int]) -> None:
    model = graph(
        [helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=axes)],
        {"x": ("float32", ["N", "C", "M", 3])},
        {"y": ("float32", ["N", "C", "M", 3])},
    )
    hold(model, [_CASES[0], _CASES[2], {"N": 5, "C": 3, "M": 2}], tolerance=1e-3)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(p: int, axis: int) -> None:
    model = graph(
        [helper.make_node("LpNormalization", ["x"], ["y"], p=p, axis=axis)],
        {"x": ("float32", ["N", "C", "M"])},
        {"y": "float32"},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"]
        norm = np.linalg.norm(x, p, axis=axis, keepdims=True)
        return [np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))]

    hold(model, _CASES, reference=reference)
    hold(model, _CASES, reference=reference, values=np.zeros_like)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lrn(size: int) -> None:
    model = graph(
        [helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.2, beta=0.6, bias=1.5)],
        {"x": ("float32", ["N", "C", "M", 2])},
        {"y": "float32"},
    )

    def reference(inputs: Mapping[str, Array]) -> list[Array]:
        x = inputs["x"]
        channels = x.shape[1]
        sums = np.zeros_like(x)
        for c in range(channels):
            first, last = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
            sums[:, c] = (x[:, first : last + 1] ** 2).sum(axis=1)
        return [x / (1.5 + 0.2 / size * sums) ** 0.6]

    hold(model, _CASES, reference=reference)


def test_mean_and_variance_over_axes_that_the_input_does_not_have() -> None:
    model = graph(
        [helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3])],
        {"x": ("float32", ["N", 3, "M"])},
        {"y": ("float32", ["N", 3, "M"])},
        opset=13,
    )
    with pytest.raises(ModelError, match="Input rank was 3"):
        compile_graph(model)
