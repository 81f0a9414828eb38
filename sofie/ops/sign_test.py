"""Sign against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("Sign", ["float32", "float64", "int8", "int64", "uint8"])
