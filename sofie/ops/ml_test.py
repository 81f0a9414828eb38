"""The smaller operators of ai.onnx.ml against ONNX Runtime or the reference."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.testing.operators import Dims, graph, hold

_DOMAIN = "ai.onnx.ml"
_CASES = [{"N": 5}, {"N": 1}, {"N": 0}, {"N": 20}]


def _model(
    op_type: str,
    dtype: str,
    outputs: dict[str, tuple[str, Dims]],
    shape: Dims = ("N", 3),
    version: int = 3,
    initializers: dict[str, np.ndarray] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    names = ["x", *(initializers or {})]
    node = helper.make_node(op_type, names, list(outputs), domain=_DOMAIN, **attributes)
    return graph(
        [node],
        {"x": (dtype, shape)},
        dict(outputs),
        initializers,
        domains={_DOMAIN: version},
        opset=17,
    )


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("length", [1, 3])
def test_scaler(dtype: str, length: int) -> None:
    model = _model(
        "Scaler",
        dtype,
        {"y": ("float32", ["N", 3])},
        offset=[0.5, -1.0, 2.0][:length],
        scale=[2.0, 3.0, -0.25][:length],
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    model = _model("Normalizer", "float32", {"y": ("float32", ["N", 3])}, norm=norm)
    hold(model, _CASES[:2], against_runtime=True, values=np.abs)


def test_binarizer() -> None:
    model = _model("Binarizer", "float32", {"y": ("float32", ["N", 3])}, threshold=0.25)
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("targets", [1, 2])
def test_linear_regressor(targets: int) -> None:
    model = _model(
        "LinearRegressor",
        "float32",
        {"y": ("float32", ["N", targets])},
        coefficients=[0.5, -1.0, 2.0, 1.5, 0.25, -0.75][: 3 * targets],
        intercepts=[0.125, -2.0][:targets],
        targets=targets,
    )
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[0, 1], [7, 3, 5]])
def test_linear_classifier(transform: str, labels: list[int]) -> None:
    rows = len(labels)
    model = _model(
        "LinearClassifier",
        "float32",
        {"label": ("int64", ["N"]), "scores": ("float32", ["N", rows])},
        coefficients=[0.5, -1.0, 2.0, 1.5, 0.25, -0.75, 0.1, 0.2, 0.3][: 3 * rows],
        intercepts=[0.125, -2.0, 0.5][:rows],
        classlabels_ints=labels,
        post_transform=transform,
    )
    hold(model, _CASES, against_runtime=True)


def test_array_feature_extractor() -> None:
    model = _model(
        "ArrayFeatureExtractor",
        "float32",
        {"y": ("float32", ["N", 2])},
        initializers={"i": np.array([2, 0])},
    )
    hold(model, _CASES[:2], against_runtime=True)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("replaced", [float("nan"), 0.0])
def test_imputer(values: list[float], replaced: float) -> None:
    model = _model(
        "Imputer",
        "float32",
        {"y": ("float32", ["N", 3])},
        imputed_value_floats=values,
        replaced_value_float=replaced,
    )
    hold(
        model,
        _CASES,
        values=lambda x: np.where(np.abs(x) < 0.5, replaced, x),
        against_runtime=True,
    )


def test_label_encoder_of_integers() -> None:
    model = _model(
        "LabelEncoder",
        "int64",
        {"y": ("float32", ["N", 3])},
        keys_int64s=[3, 1, -2],
        values_floats=[0.5, 1.5, 2.5],
        default_float=-1.0,
    )
    hold(model, _CASES, against_runtime=True)


def test_label_encoder_of_floats_and_nan() -> None:
    model = _model(
        "LabelEncoder",
        "float32",
        {"y": ("int64", ["N", 3])},
        version=4,
        keys_floats=[1.0, float("nan"), -2.0],
        values_int64s=[10, 20, 30],
        default_int64=-5,
    )
    hold(
        model,
        _CASES,
        values=lambda x: np.where(x > 1.5, np.nan, np.round(x)),
        against_runtime=True,
    )


def test_one_hot_encoder() -> None:
    model = _model(
        "OneHotEncoder",
        "int64",
        {"y": ("float32", ["N", 3, 4])},
        cats_int64s=[0, 3, -2, 5],
        zeros=1,
    )
    hold(model, _CASES[:2], against_runtime=True)
