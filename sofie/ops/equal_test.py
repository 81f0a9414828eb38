"""Equal against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("Equal", ["float32", "int64", "bool"], "bool", arity=2)
