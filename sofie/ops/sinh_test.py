"""Sinh against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("Sinh", ["float32", "float64"])
