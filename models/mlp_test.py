"""Tests of the MLP: the checked-in file and what it computes."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import numpy_helper

from models import mlp

_FILE = pathlib.Path(mlp.__file__).with_name("mlp.onnx")


def test_checked_in_file_is_what_the_script_makes() -> None:
    assert _FILE.read_bytes() == mlp.make().SerializeToString(deterministic=True)


def test_operators() -> None:
    operators = [node.op_type for node in onnx.load(_FILE).graph.node]
    assert operators == ["Gemm", "Relu", "Gemm", "Relu", "Gemm", "Softmax"]


@pytest.mark.parametrize("batch", [0, 1, 33])
def test_computes_three_layers(batch: int) -> None:
    features = np.random.default_rng(1).standard_normal((batch, 16)).astype(np.float32)
    parameters = {
        tensor.name: numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in onnx.load(_FILE).graph.initializer
    }
    value = features.astype(np.float64)
    for layer in range(3):
        if layer:
            value = np.maximum(value, 0)
        value = value @ parameters[f"layers.{layer}.weight"].T + parameters[f"layers.{layer}.bias"]
    expected = np.exp(value) / np.exp(value).sum(axis=1, keepdims=True)
    session = onnxruntime.InferenceSession(_FILE, providers=["CPUExecutionProvider"])
    result = session.run(["probabilities"], {"features": features})[0]
    assert result.shape == (batch, 5)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    if batch > 1:
        assert np.ptp(result, axis=0).max() > 0.1
