"""HardSigmoid against the reference, at several sizes."""

from sofie.testing.operators import hold_elementwise


def test_defaults() -> None:
    hold_elementwise("HardSigmoid", ["float32", "float64"], values=lambda x: x * 4)


def test_attributes() -> None:
    hold_elementwise(
        "HardSigmoid",
        ["float32", "float64"],
        values=lambda x: x * 4,
        attributes={"alpha": 0.44, "beta": 0.65},
    )
