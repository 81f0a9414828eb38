"""SVMRegressor and SVMClassifier against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, compile_graph, graph, hold

_CASES = [{"N": 5}, {"N": 1}, {"N": 0}, {"N": 40}]
_KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def _model(
    op_type: str, outputs: dict[str, tuple[str, Dims]], dtype: str = "float32", **attributes: Any
) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    kind: Dims = ["N", 3]
    return graph([node], {"x": (dtype, kind)}, dict(outputs), domains={"ai.onnx.ml": 3}, opset=17)


def _vectors(kernel: str, count: int, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "kernel_type": kernel,
        "kernel_params": [0.25, 0.5, 3.0],
        "support_vectors": rng.standard_normal(3 * count).tolist(),
    }


@pytest.mark.parametrize("kernel", _KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressor(kernel: str, one_class: int) -> None:
    rng = np.random.default_rng(1)
    model = _model(
        "SVMRegressor",
        {"y": ("float32", ["N", 1])},
        n_supports=4,
        coefficients=rng.standard_normal(4).tolist(),
        rho=[0.125],
        one_class=one_class,
        **_vectors(kernel, 4, rng),
    )
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


def test_regressor_without_support_vectors() -> None:
    model = _model(
        "SVMRegressor", {"y": ("float32", ["N", 1])}, coefficients=[0.5, -2.0, 1.0], rho=[0.25]
    )
    hold(model, _CASES, reference=lambda x: [x["x"] @ np.array([[0.5], [-2], [1]], "f") + 0.25])


def _classifier(classes: int, kernel: str, **attributes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    per_class = [2, 3, 1, 2][:classes]
    pairs = classes * (classes - 1) // 2
    return {
        "classlabels_ints": [7, 3, 5, 4][:classes],
        "vectors_per_class": per_class,
        "coefficients": rng.standard_normal((classes - 1) * sum(per_class)).tolist(),
        "rho": rng.standard_normal(pairs).tolist(),
        **_vectors(kernel, sum(per_class), rng),
        **attributes,
    }


@pytest.mark.parametrize("kernel", _KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_scores_of_pairs(kernel: str, classes: int) -> None:
    scores: Dims = ["N", {2: 2, 3: 3, 4: 6}[classes]]
    outputs: dict[str, tuple[str, Dims]] = {"label": ("int64", ["N"]), "s": ("float32", scores)}
    model = _model("SVMClassifier", outputs, **_classifier(classes, kernel))
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize(
    ("classes", "dtype", "transform"),
    [(2, "float32", "NONE"), (4, "float32", "SOFTMAX"), (3, "int64", "LOGISTIC")],
)
def test_probabilities(classes: int, dtype: str, transform: str) -> None:
    pairs = classes * (classes - 1) // 2
    outputs: dict[str, tuple[str, Dims]] = {
        "label": ("int64", ["N"]),
        "p": ("float32", ["N", classes]),
    }
    attributes = _classifier(
        classes,
        "RBF",
        prob_a=[-1.5, -0.5, -2.0, -1.0, -3.0, -0.25][:pairs],
        prob_b=[0.25, -0.5, 0.0, 0.5, 1.0, -1.0][:pairs],
        post_transform=transform,
    )
    model = _model("SVMClassifier", outputs, dtype, **attributes)
    hold(model, _CASES[:3], against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX"])
def test_classes_without_support_vectors(transform: str) -> None:
    model = _model(
        "SVMClassifier",
        {"label": ("int64", ["N"]), "s": ("float32", ["N", 3])},
        classlabels_ints=[7, 3, 5],
        coefficients=np.random.default_rng(3).standard_normal(9).tolist(),
        rho=[0.5],
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        post_transform=transform,
    )
    hold(model, _CASES, against_runtime=True, tolerance=1e-4)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"rho": [0.0]}, "1 numbers in rho instead of 3"),
        ({"vectors_per_class": [3, 3]}, "vectors_per_class that are not one number for each class"),
        ({"kernel_type": "COSINE"}, "the kernel_type 'COSINE'"),
        ({"support_vectors": [1.0]}, "support_vectors that are not 6 of 3 numbers"),
        ({"prob_a": [1.0]}, "1 numbers in prob_a instead of 3"),
    ],
)
def test_damaged_attributes_are_refused(attributes: dict[str, Any], reason: str) -> None:
    outputs: dict[str, tuple[str, Dims]] = {"label": ("int64", ["N"]), "s": ("float32", ["N", 3])}
    model = _model("SVMClassifier", outputs, **_classifier(3, "RBF", **attributes))
    with pytest.raises(ModelError, match=reason):
        compile_graph(model)


def test_two_classes_whose_scores_runtimes_disagree_about() -> None:
    outputs: dict[str, tuple[str, Dims]] = {"label": ("int64", ["N"]), "s": ("float32", ["N", 2])}
    attributes = _classifier(2, "RBF", post_transform="LOGISTIC")
    with pytest.raises(ModelError, match="'LOGISTIC' of one score for two classes"):
        compile_graph(_model("SVMClassifier", outputs, **attributes))
