"""IsInf against the reference, at several sizes."""

import numpy as np
import pytest

from sofie.testing.operators import Array, hold_elementwise


def _with_infinities(x: Array) -> Array:
    return np.where(np.abs(x) > 0.5, x * np.inf, x)


@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("positive", [0, 1])
def test_either_sign(negative: int, positive: int) -> None:
    hold_elementwise(
        "IsInf",
        ["float32", "float64"],
        "bool",
        values=_with_infinities,
        attributes={"detect_negative": negative, "detect_positive": positive},
    )
