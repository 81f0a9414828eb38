"""IsNaN against the reference, at several sizes."""

import numpy as np

from sofie.testing.operators import hold_elementwise


def test_every_type() -> None:
    hold_elementwise(
        "IsNaN", ["float32", "float64"], "bool", values=lambda x: np.where(x > 0.5, np.nan, x)
    )
