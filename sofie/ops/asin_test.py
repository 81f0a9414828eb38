"""Asin against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_inside_and_outside_of_its_domain() -> None:
    hold_elementwise("Asin", ["float32", "float64"], values=lambda x: x * 0.6 + 0)
