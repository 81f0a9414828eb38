"""BitShift against the reference, at several sizes."""

import pytest

from sofie.testing.operators import hold_elementwise


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_unsigned(direction: str) -> None:
    types = ["uint8", "uint16", "uint32", "uint64"]
    hold_elementwise("BitShift", types, arity=2, attributes={"direction": direction})


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_signed(direction: str) -> None:
    hold_elementwise(
        "BitShift",
        ["int8", "int64"],
        arity=2,
        values=abs,
        opset=28,
        attributes={"direction": direction},
    )
