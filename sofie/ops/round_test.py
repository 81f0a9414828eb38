"""Round against the reference, at several sizes."""

import numpy as np

from sofie.testing.operators import hold_elementwise


def test_halves_go_to_the_even_neighbour() -> None:
    hold_elementwise("Round", ["float32", "float64"], values=lambda x: np.round(x * 4) / 2)
