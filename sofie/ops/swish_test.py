"""Swish against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_defaults() -> None:
    hold_elementwise("Swish", ["float32", "float64"], values=lambda x: x * 2, opset=24)


def test_attributes() -> None:
    hold_elementwise(
        "Swish", ["float32", "float64"], values=lambda x: x * 2, opset=24, attributes={"alpha": 1.0}
    )
