"""Abs against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("Abs", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
