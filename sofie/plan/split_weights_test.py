"""Weights in the parts that Hopper's tensor cores read."""

import ml_dtypes
import numpy as np
import pytest

from sofie.ir.program import Precision
from sofie.plan.split_weights import parts


def _place(outputs: int, count: int, n: int, k: int, part: int) -> int:
    """As ``PartPlace`` in sofie/runtime/kernels/dense_shape.h."""
    step, column = divmod(k, 16)
    half = column // 2 % 2
    start = (step * count + part) * outputs * 16
    return start + n // 8 * 128 + half * 64 + n % 8 * 8 + column // 4 * 2 + column % 2


@pytest.mark.parametrize(
    ("precision", "count", "bits"),
    [(Precision.FP32, 3, 24), (Precision.TF32, 2, 16), (Precision.BF16, 1, 8)],
)
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 64), (128, 20), (64, 33), (192, 1)])
def test_parts_sum_to_the_weight(
    precision: Precision, count: int, bits: int, outputs: int, inputs: int
) -> None:
    weight = np.random.default_rng(5).standard_normal((outputs, inputs)).astype(np.float32)
    found = parts(weight, precision)
    assert found.size == -(-inputs // 32) * 32 * outputs * count
    values = found.view(ml_dtypes.bfloat16).astype(np.float64)
    for n in range(outputs):
        for k in range(inputs):
            total = sum(values[_place(outputs, count, n, k, p)] for p in range(count))
            # The last of three parts has no bit left to round.
            tolerance = 0.0 if bits == 24 else 2.0**-bits * abs(weight[n, k])
            assert abs(total - weight[n, k]) <= tolerance
    used = {
        _place(outputs, count, n, k, p)
        for n in range(outputs)
        for k in range(inputs)
        for p in range(count)
    }
    rest = np.setdiff1d(np.arange(found.size), sorted(used))
    assert not found[rest].any()


def test_half_precision_rounds_once() -> None:
    weight = np.linspace(-3, 3, 64 * 32, dtype=np.float32).reshape(64, 32)
    values = parts(weight, Precision.FP16).view(np.float16)
    assert values[_place(64, 1, 17, 29, 0)] == np.float16(weight[17, 29])
