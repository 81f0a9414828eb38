"""Tests of ParticleNet: the checked-in file, its structure, and what it computes."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import numpy_helper

from models import jet_inputs, particle_net
from models.jet_inputs import Feature

_FILE = pathlib.Path(particle_net.__file__).with_name("particle_net.onnx")
_EPSILON = 1e-5

Array = npt.NDArray[np.float64]
Inputs = dict[str, npt.NDArray[np.float32]]


@pytest.fixture(scope="module", name="model")
def _model() -> onnx.ModelProto:
    return onnx.load(_FILE)


@pytest.fixture(scope="module", name="session")
def _session() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(_FILE, options, providers=["CPUExecutionProvider"])


def _standard(features: Sequence[Feature]) -> tuple[Array, Array]:
    """Centre and scale of each feature."""
    return (
        np.array([feature.centre for feature in features]),
        np.array([feature.scale for feature in features]),
    )


def _jets(seed: int, n: int, n_pf: int, n_sv: int) -> Inputs:
    """Features have the spread of real jets; some are beyond the limits of the standardisation."""
    random = np.random.default_rng(seed)
    inputs = {}
    for prefix, count in (("pf", n_pf), ("sv", n_sv)):
        centre, scale = _standard(particle_net.COLLECTIONS[prefix])
        standard = random.standard_normal((n, len(centre), count))
        standard *= np.where(random.random(standard.shape) < 0.05, 5, 1)
        inputs[f"{prefix}_points"] = 0.3 * random.standard_normal((n, 2, count))
        inputs[f"{prefix}_features"] = centre[:, None] + scale[:, None] * standard
        inputs[f"{prefix}_mask"] = np.ones((n, 1, count))
    return {name: array.astype(np.float32) for name, array in inputs.items()}


def _run(session: onnxruntime.InferenceSession, inputs: Inputs) -> Array:
    return np.asarray(session.run(None, inputs)[0], np.float64)


class _Paper:
    """The network written down from the paper, one unpadded jet at a time, in float64."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._parameters = {
            tensor.name: numpy_helper.to_array(tensor).astype(np.float64)
            for tensor in model.graph.initializer
        }

    def __call__(self, jet: Inputs) -> Array:
        points = np.concatenate([jet["pf_points"].T, jet["sv_points"].T]).astype(np.float64)
        features = np.concatenate([self._embed("pf", jet), self._embed("sv", jet)])
        blocks = []
        for index in range(3):
            features = self._edge_conv(f"pn.edge_convs.{index}", points, features)
            points = features
            blocks.append(features)
        fused = self._dense(np.concatenate(blocks, axis=1), "pn.fusion_block.0")
        pooled = np.maximum(self._normalise(fused, "pn.fusion_block.1"), 0).mean(axis=0)
        hidden = np.maximum(self._affine(pooled, "pn.fc.0.0"), 0)
        scores = self._affine(hidden, "pn.fc.1")
        exponentials = np.exp(scores - scores.max())
        return np.asarray(exponentials / exponentials.sum(), np.float64)

    def _embed(self, prefix: str, jet: Inputs) -> Array:
        centre, scale = _standard(particle_net.COLLECTIONS[prefix])
        value = (jet[f"{prefix}_features"].T.astype(np.float64) - centre) / scale
        value = np.clip(value, -jet_inputs.LIMIT, jet_inputs.LIMIT)
        value = self._normalise(value, f"{prefix}_conv.fc.0")
        value = self._normalise(self._dense(value, f"{prefix}_conv.fc.1"), f"{prefix}_conv.fc.2")
        return np.asarray(np.maximum(value, 0), np.float64)

    def _edge_conv(self, module: str, points: Array, features: Array) -> Array:
        result = []
        for i, point in enumerate(points):
            distance = ((points - point) ** 2).sum(axis=1)
            distance[i] = np.inf
            nearest = np.argsort(distance)[:16]
            centre = np.broadcast_to(features[i], features[nearest].shape)
            value = np.concatenate([centre, features[nearest] - centre], axis=1)
            for layer in range(3):
                value = self._dense(value, f"{module}.convs.{layer}")
                value = np.maximum(self._normalise(value, f"{module}.bns.{layer}"), 0)
            result.append(value.mean(axis=0))
        shortcut = self._normalise(self._dense(features, f"{module}.sc"), f"{module}.sc_bn")
        return np.asarray(np.maximum(shortcut + np.stack(result), 0), np.float64)

    def _dense(self, value: Array, module: str) -> Array:
        weight = self._parameters[f"{module}.weight"]
        return np.asarray(value @ weight.reshape(weight.shape[:2]).T, np.float64)

    def _affine(self, value: Array, module: str) -> Array:
        return self._dense(value, module) + self._parameters[f"{module}.bias"]

    def _normalise(self, value: Array, module: str) -> Array:
        mean, variance, weight, bias = (
            self._parameters[f"{module}.{part}"]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return np.asarray((value - mean) / np.sqrt(variance + _EPSILON) * weight + bias, np.float64)


def test_checked_in_file_is_what_the_script_makes() -> None:
    assert _FILE.read_bytes() == particle_net.make().SerializeToString(deterministic=True)


def test_operators(model: onnx.ModelProto) -> None:
    counts = collections.Counter(node.op_type for node in model.graph.node)
    expected = {"Conv": 15, "BatchNormalization": 17, "TopK": 3, "Gemm": 2, "MatMul": 3}
    assert {operator: counts[operator] for operator in expected} == expected
    assert counts.keys() >= {
        "Gather",
        "Range",
        "Tile",
        "Concat",
        "ReduceSum",
        "ReduceMean",
        "Max",
        "Pow",
        "Neg",
        "Equal",
        "Softmax",
        "Transpose",
        "Reshape",
        "Shape",
        "Slice",
    }
    assert [entry.version for entry in model.opset_import] == [18]


def test_interface(model: onnx.ModelProto) -> None:
    def shape(value: onnx.ValueInfoProto) -> list[int | str]:
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]

    assert {value.name: shape(value) for value in model.graph.input} == {
        "pf_points": ["N", 2, "n_pf"],
        "pf_features": ["N", 20, "n_pf"],
        "pf_mask": ["N", 1, "n_pf"],
        "sv_points": ["N", 2, "n_sv"],
        "sv_features": ["N", 11, "n_sv"],
        "sv_mask": ["N", 1, "n_sv"],
    }
    assert {value.name: shape(value) for value in model.graph.output} == {"softmax": ["N", 8]}


def test_names_are_unique(model: onnx.ModelProto) -> None:
    names = [node.name for node in model.graph.node]
    values = [value for node in model.graph.node for value in node.output]
    assert len(set(names)) == len(names)
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(("n", "n_pf", "n_sv"), [(1, 100, 10), (1, 16, 1), (3, 33, 3)])
def test_agrees_with_the_paper(
    model: onnx.ModelProto,
    session: onnxruntime.InferenceSession,
    n: int,
    n_pf: int,
    n_sv: int,
) -> None:
    inputs = _jets(11, n, n_pf, n_sv)
    paper = _Paper(model)
    expected = [paper({name: array[jet] for name, array in inputs.items()}) for jet in range(n)]
    np.testing.assert_allclose(_run(session, inputs), expected, rtol=2e-5)


def test_padding_changes_nothing(session: onnxruntime.InferenceSession) -> None:
    inputs = _jets(12, 4, 40, 4)
    padded = {}
    for name, array in inputs.items():
        # Padding may hold anything, as long as the mask says so.
        filler = 0.0 if name.endswith("mask") else 0.7
        padded[name] = np.concatenate([array, np.full_like(array[:, :, :3], filler)], axis=2)
    np.testing.assert_allclose(_run(session, padded), _run(session, inputs), rtol=2e-5)


def test_fewer_real_points_than_neighbours_is_finite(
    session: onnxruntime.InferenceSession,
) -> None:
    inputs = _jets(13, 2, 20, 2)
    inputs["pf_mask"][:, :, 5:] = 0
    result = _run(session, inputs)
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-6)


def test_order_of_particles_does_not_matter(session: onnxruntime.InferenceSession) -> None:
    inputs = _jets(14, 3, 30, 3)
    order = np.random.default_rng(0).permutation(30)
    shuffled = {
        name: array[:, :, order] if name.startswith("pf") else array
        for name, array in inputs.items()
    }
    np.testing.assert_allclose(_run(session, shuffled), _run(session, inputs), rtol=2e-5)


def test_jets_differ_clearly(session: onnxruntime.InferenceSession) -> None:
    result = _run(session, _jets(15, 32, 60, 6))
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-6)
    # Light quarks make hardly a jet with six vertices: the classes with b quarks share these.
    b_quarks = [i for i, name in enumerate(jet_inputs.CLASSES) if "b" in name]
    assert (np.ptp(result[:, b_quarks], axis=0) > 0.1).all()
    assert np.median(result.max(axis=1)) < 0.9


def test_too_few_points_are_refused(session: onnxruntime.InferenceSession) -> None:
    with pytest.raises(Exception, match="k argument"):
        session.run(None, _jets(16, 1, 15, 1))
