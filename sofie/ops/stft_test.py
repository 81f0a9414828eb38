"""STFT against the reference."""

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import graph, hold

_CASES = [{"N": 2, "L": 20}, {"N": 1, "L": 8}, {"N": 0, "L": 9}]


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("step", [1, 3, 8])
@pytest.mark.parametrize("window", [False, True])
def test_frames(onesided: int, step: int, window: bool) -> None:
    constants = {"s": np.array(step, np.int64), "n": np.array(8, np.int64)}
    if window:
        constants["w"] = np.hanning(8).astype(np.float32)
    names = ["x", "s", "w" if window else "", "n"]
    model = graph(
        [helper.make_node("STFT", names, ["y"], onesided=onesided)],
        {"x": ("float32", ["N", "L", 1])},
        {"y": ("float32", ["N", "F", "K", 2])},
        constants,
    )
    program = hold(model, _CASES)
    with pytest.raises(interpreter.RequirementError, match="a frame of 8 is longer than"):
        interpreter.run(program, {"x": np.ones((1, 7, 1), np.float32)})


def test_complex_signals() -> None:
    model = graph(
        [helper.make_node("STFT", ["x", "s", "w"], ["y"], onesided=0)],
        {"x": ("float32", ["N", "L", 2]), "w": ("float32", [5])},
        {"y": ("float32", ["N", "F", "K", 2])},
        {"s": np.array(2, np.int64)},
    )

    def reference(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        x, window = inputs["x"], inputs["w"]
        signal = x[..., 0] + 1j * x[..., 1]
        starts = range(0, signal.shape[1] - 4, 2)
        frames = [np.fft.fft(signal[:, s : s + 5] * window) for s in starts]
        result = np.stack(frames, axis=1)
        return [np.stack([result.real, result.imag], axis=-1).astype(np.float32)]

    hold(model, _CASES, reference=reference)
