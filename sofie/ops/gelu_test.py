"""Gelu against the reference, at several sizes."""

import pytest

from sofie.testing.operators import hold_elementwise


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_every_type(approximate: str) -> None:
    hold_elementwise("Gelu", ["float32", "float64"], attributes={"approximate": approximate})
