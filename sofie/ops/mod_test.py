"""Mod against the reference, at several sizes."""

import numpy as np
import pytest

from sofie.testing.operators import Array, hold_elementwise


def _not_zero(x: Array) -> Array:
    return np.where(x == 0, np.ones_like(x), x)


@pytest.mark.parametrize("fmod", [0, 1])
def test_integers(fmod: int) -> None:
    types = ["int8", "int32", "int64", "uint8", "uint32"]
    hold_elementwise("Mod", types, arity=2, values=_not_zero, attributes={"fmod": fmod})


def test_floats() -> None:
    hold_elementwise("Mod", ["float32", "float64"], arity=2, attributes={"fmod": 1})


def test_floats_with_the_sign_of_the_divisor() -> None:
    hold_elementwise("Mod", ["float32", "float64"], arity=2, opset=28)
