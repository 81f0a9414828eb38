"""BatchNormalization against the reference."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold

_STATISTICS = ["scale", "bias", "mean", "variance"]
_SHAPES = [["N", 3], ["N", 3, "M"], ["N", 3, "M", 4]]
_CASES = [{"N": 3, "M": 5}, {"N": 0, "M": 1}, {"N": 4, "M": 2}]


def _constants() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {n: rng.uniform(0.5, 2, 3).astype(np.float32) for n in _STATISTICS}


@pytest.mark.parametrize("shape", _SHAPES)
def test_constant_statistics(shape: Dims) -> None:
    model = graph(
        [helper.make_node("BatchNormalization", ["x", *_STATISTICS], ["y"], epsilon=1e-3)],
        {"x": ("float32", shape)},
        {"y": "float32"},
        _constants(),
    )
    hold(model, _CASES)


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("opset", [9, 15])
def test_statistics_that_are_inputs(shape: Dims, opset: int) -> None:
    inputs: dict[str, tuple[str, Dims]] = {n: ("float32", [3]) for n in _STATISTICS}
    model = graph(
        [helper.make_node("BatchNormalization", ["x", *_STATISTICS], ["y"])],
        {"x": ("float32", shape), **inputs},
        {"y": "float32"},
        opset=opset,
    )
    feeds = {"mean": np.array([0.1, 2, -3], np.float32), "variance": np.ones(3, np.float32)}

    def reference(given: dict[str, np.ndarray]) -> list[np.ndarray]:
        x = given["x"]
        stretched = {n: given[n].reshape(-1, *[1] * (x.ndim - 2)) for n in _STATISTICS}
        normal = (x - stretched["mean"]) / np.sqrt(stretched["variance"] + np.float32(1e-5))
        return [normal * stretched["scale"] + stretched["bias"]]

    hold(model, _CASES, feeds, reference=reference)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", _SHAPES)
def test_training_mode(shape: Dims) -> None:
    outputs = ["y", "running_mean", "running_variance"]
    model = graph(
        [
            helper.make_node(
                "BatchNormalization",
                ["x", *_STATISTICS],
                outputs,
                training_mode=1,
                momentum=0.8,
                epsilon=1e-3,
            )
        ],
        {"x": ("float32", shape)},
        {name: ("float32", shape if name == "y" else [3]) for name in outputs},
        _constants(),
        opset=15,
    )

    def reference(given: dict[str, np.ndarray]) -> list[np.ndarray]:
        x, constants = given["x"], _constants()
        axes = tuple(a for a in range(x.ndim) if a != 1)
        stretch = (1, 3, *[1] * (x.ndim - 2))
        mean, variance = x.mean(axes), x.var(axes)
        normal = (x - mean.reshape(stretch)) / np.sqrt(variance.reshape(stretch) + 1e-3)
        y = normal * constants["scale"].reshape(stretch) + constants["bias"].reshape(stretch)
        running = [
            constants[name] * 0.8 + now * 0.2
            for name, now in (("mean", mean), ("variance", variance))
        ]
        return [a.astype(np.float32) for a in (y, *running)]

    cases = [{"N": 3, "M": 5}, {"N": 8, "M": 1}, {"N": 4, "M": 2}]
    hold(model, cases, reference=reference, tolerance=1e-4)  # type: ignore[arg-type]


def test_a_convolution_keeps_a_normalisation_with_statistics_of_the_batch() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(
            "BatchNormalization", ["c", *_STATISTICS], ["y", "m", "v"], training_mode=1
        ),
    ]
    weights = np.random.default_rng(9).standard_normal((3, 2, 1)).astype(np.float32)
    model = graph(
        nodes,
        {"x": ("float32", ["N", 2, "M"])},
        {"y": ("float32", ["N", 3, "M"])},
        {**_constants(), "w": weights},
        opset=15,
    )
    assert len(compile_graph(model).steps) > 2


def test_statistics_of_every_element_are_refused() -> None:
    model = graph(
        [helper.make_node("BatchNormalization", ["x", *_STATISTICS], ["y"], spatial=0, name="bn")],
        {"x": ("float32", ["N", 3])},
        {"y": "float32"},
        _constants(),
        opset=7,
    )
    with pytest.raises(ModelError, match=r"bn \(BatchNormalization\): spatial = 0"):
        compile_graph(model)
