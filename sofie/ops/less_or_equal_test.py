"""LessOrEqual against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("LessOrEqual", ["float32", "float64", "int32", "uint8"], "bool", arity=2)
