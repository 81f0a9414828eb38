"""HardSwish against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("HardSwish", ["float32", "float64"], values=lambda x: x * 3)
