"""Celu against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_defaults() -> None:
    hold_elementwise("Celu", ["float32"], values=lambda x: x * 2)


def test_attributes() -> None:
    hold_elementwise(
        "Celu",
        ["float32", "float64"],
        opset=28,
        values=lambda x: x * 2,
        attributes={"alpha": 0.6},
    )
