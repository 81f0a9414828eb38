"""Symbolic sizes in C++."""

import pytest
import sympy

from sofie.ir import dim_text, dim_values, dims

_S0, _S1 = dims.symbol(0), dims.symbol(1)


def _cpp(expr: object) -> str:
    return dim_text.to_cpp(sympy.sympify(expr), lambda s: s.name)


def test_printing() -> None:
    assert _cpp(_S0 + _S1) == "s0 + s1"
    assert _cpp(16 * _S0 * (_S0 + _S1)) == "16 * s0 * (s0 + s1)"
    assert _cpp(_S0 - 1) == "s0 - 1"
    assert _cpp(dims.FloorDiv(_S0 + 1, sympy.Integer(2))) == "(s0 + 1) / 2"
    assert _cpp(dims.FloorMod(_S0, sympy.Integer(4))) == "s0 % 4"
    assert _cpp(dims.Broadcast(_S0, _S1)) == "(s0 == 1 ? s1 : s0)"
    assert _cpp(sympy.Max(_S0, 3)) == "sofie::Max(3, s0)"
    assert _cpp(_S0**2) == "s0 * s0"


def test_divisions_round_down_at_every_size() -> None:
    # Sizes may be 0, and C++'s own division rounds towards zero.
    assert _cpp(dims.FloorDiv(_S0 - _S1, sympy.Integer(2))) == "sofie::FloorDiv(s0 - s1, 2)"
    assert _cpp(dims.FloorMod(_S0, _S1)) == "sofie::FloorMod(s0, s1)"


def test_numbers_among_sizes() -> None:
    # SymPy takes 0.0 for an integer.
    steps = dims.Steps(sympy.Float(0.0), dims.element(0), sympy.Float(1.0))
    text = "sofie::Steps((0x0.0p+0), static_cast<double>(d0), (0x1.0000000000000p+0))"
    assert _cpp(steps) == text


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (4 * _S1 * (sympy.Max(_S0, 3) + 3), 4 * 2 * 10),
        (_S1 * dims.FloorDiv(sympy.Min(_S0, 5), sympy.Integer(2)), 2 * 2),
        (3 * dims.FloorMod(sympy.Max(_S0, 1), sympy.Integer(4)), 3 * 3),
        (-(sympy.Max(_S0, _S1) - 1), -6),
    ],
)
def test_printed_text_means_what_the_expression_means(expr: sympy.Expr, value: int) -> None:
    text = dim_text.to_cpp(expr, lambda s: s.name)
    text = text.replace("sofie::Max", "max").replace("sofie::Min", "min")
    text = text.replace(" / ", " // ")
    assert eval(text, {"__builtins__": {}}, {"max": max, "min": min, "s0": 7, "s1": 2}) == value


def test_sizes_of_a_damaged_file_do_not_overflow() -> None:
    """Numbers beyond 64 bits: a size that no run can have, which has a nominal value anyway."""
    huge = sympy.Integer(2**62) * 8
    size = dims.FloorDiv(huge * _S0 * sympy.Max(_S1, 3), sympy.Max(_S0, 5)) + huge
    assert dim_values.nominal(size) > 2**64
    with pytest.raises(dims.SizeError, match="more than 64 bits"):
        _cpp(size)
