"""Tests of the CNN: the checked-in file and what it computes."""

from __future__ import annotations

import pathlib

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import numpy_helper

from models import cnn

_FILE = pathlib.Path(cnn.__file__).with_name("cnn.onnx")

Array = npt.NDArray[np.float64]


def _convolve(image: Array, weight: Array, bias: Array, stride: int) -> Array:
    """A 3×3 convolution of [C, H, W] with one cell of padding, by its definition."""
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    rows, columns = (extent // stride for extent in image.shape[1:])
    result = np.empty((len(weight), rows, columns))
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            window = padded[:, top : top + 3, left : left + 3]
            result[:, row, column] = np.einsum("oikl,ikl->o", weight, window) + bias
    return result


def _expected(image: Array, parameters: dict[str, Array]) -> Array:
    value = _convolve(image, parameters["convs.0.weight"], parameters["convs.0.bias"], 1)
    mean, variance, weight, bias = (
        parameters[f"bns.0.{part}"][:, None, None]
        for part in ("running_mean", "running_var", "weight", "bias")
    )
    value = np.maximum((value - mean) / np.sqrt(variance + 1e-5) * weight + bias, 0)
    channels = len(value)
    value = value.reshape(channels, 16, 2, 16, 2).max(axis=(2, 4))
    value = _convolve(value, parameters["convs.1.weight"], parameters["convs.1.bias"], 2)
    value = np.maximum(value, 0).ravel()
    value = np.maximum(parameters["fc.0.weight"] @ value + parameters["fc.0.bias"], 0)
    value = parameters["fc.1.weight"] @ value + parameters["fc.1.bias"]
    return np.asarray(np.exp(value) / np.exp(value).sum(), np.float64)


def test_checked_in_file_is_what_the_script_makes() -> None:
    assert _FILE.read_bytes() == cnn.make().SerializeToString(deterministic=True)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_computes_its_layers(batch: int) -> None:
    images = np.random.default_rng(2).standard_normal((batch, 1, 32, 32)).astype(np.float32)
    parameters = {
        tensor.name: numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in onnx.load(_FILE).graph.initializer
    }
    session = onnxruntime.InferenceSession(_FILE, providers=["CPUExecutionProvider"])
    result = session.run(["probabilities"], {"image": images})[0]
    assert result.shape == (batch, 3)
    for got, image in zip(result, images, strict=True):
        np.testing.assert_allclose(got, _expected(image.astype(np.float64), parameters), rtol=1e-5)
    if batch > 1:
        assert np.ptp(result, axis=0).max() > 0.1
