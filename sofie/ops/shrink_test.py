"""Shrink against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_defaults() -> None:
    hold_elementwise("Shrink", ["float32", "float64", "int32", "uint8"], values=lambda x: x * 2)


def test_attributes() -> None:
    hold_elementwise(
        "Shrink",
        ["float32", "float64", "int32", "uint8"],
        values=lambda x: x * 2,
        attributes={"lambd": 1.5, "bias": 0.5},
    )
