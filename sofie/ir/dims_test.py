"""Symbolic sizes."""

from collections.abc import Callable

import onnx_ir
import pytest
import sympy

from sofie.ir import dims

_S0, _S1 = dims.symbol(0), dims.symbol(1)


@pytest.mark.parametrize(
    "text", ["s0", "s0 + s1", "floor(s0/2)", "Max(0, s0 - 3)", "ceiling(s0/2)"]
)
def test_sizes_of_the_library_are_read(text: str) -> None:
    expr = dims.as_expr(onnx_ir.SymbolicDim(text))
    value = expr.subs({_S0: 7, _S1: 2})
    expected = {"s0": 7, "s0 + s1": 9, "floor(s0/2)": 3, "Max(0, s0 - 3)": 4, "ceiling(s0/2)": 4}
    assert int(value) == expected[text]


@pytest.mark.parametrize(
    "size",
    [
        dims.FloorDiv(_S0 + 1, sympy.Integer(2)) * _S1,
        dims.FloorMod(_S0, _S1) + 1,
        dims.Broadcast(_S0, _S1) - dims.NotOne(_S0),
        sympy.Max(_S0 - 3, dims.IsNegative(_S0 - _S1)),
        # The first is 1, and the others are 0, where no size is 0.
        sympy.Min(_S0, 1),
        dims.IsNegative(_S0 - 1),
        dims.Equals(_S0, dims.ZERO),
    ],
)
def test_round_trip(size: sympy.Expr) -> None:
    dim = dims.as_dim(size)
    assert not isinstance(dim, int)
    assert dims.same(dims.as_expr(dim), size)
    assert dims.same(dims.as_expr(onnx_ir.SymbolicDim(dim.value)), size)


def test_bounds_of_products() -> None:
    rounded = dims.FloorDiv(_S0, sympy.Integer(4))
    assert dims.at_most(rounded * _S1) == _S0 * _S1 / 4
    assert dims.at_most(_S0 + rounded) == _S0 + rounded
    # Less is taken away from 0 than without rounding.
    assert dims.at_most(-rounded) == -rounded


def test_sizes_may_be_zero() -> None:
    assert dims.smallest(dims.ONE, _S0) != 1
    assert dims.largest(_S0 - 1, dims.ZERO) != _S0 - 1
    assert dims.clamp(_S0 + 2, _S0, _S0 + 1) == _S0 + 1


def test_equal_differences_look_equal() -> None:
    rest = sympy.Max(_S0 - 1, 0)
    assert dims.minus(_S0, sympy.Min(_S0, 1)) == rest
    assert dims.minus(sympy.Max(_S0, 1), dims.ONE) == rest
    assert dims.minus(_S0, dims.ONE) == _S0 - 1


def test_broadcast() -> None:
    assert dims.broadcast(_S0, _S1) == dims.broadcast(_S1, _S0)
    assert dims.broadcast(_S0, dims.ONE) == _S0
    assert dims.broadcast(sympy.Integer(3), _S0) == 3
    pairs = {(1, 5): 5, (5, 1): 5, (1, 0): 0, (0, 1): 0, (7, 7): 7}
    for (a, b), value in pairs.items():
        assert dims.broadcast(_S0, _S1).subs({_S0: a, _S1: b}) == value


def test_an_unknown_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown"):
        dims.as_expr(onnx_ir.SymbolicDim(None))


def test_folding() -> None:
    assert dims.FloorDiv(sympy.Integer(-7), sympy.Integer(2)) == -4
    assert dims.FloorMod(sympy.Integer(-7), sympy.Integer(2)) == 1
    assert dims.NotOne(sympy.Integer(1)) == 0
    assert dims.NotOne(sympy.Integer(5)) == 1
    assert dims.IsNegative(-_S0 - 1) == 1
    assert dims.IsNegative(_S0) == 0


def test_packed_strides_follow_the_order() -> None:
    shape = (_S0, sympy.Integer(4), _S1)
    assert dims.packed_strides(shape, (0, 2, 1)) == (4 * _S1, 1, 4)


def test_unpacking_needs_no_division_where_the_parts_are_apart() -> None:
    n, p, k = (sympy.Symbol(f"i{a}", integer=True, nonnegative=True) for a in range(3))
    size = _S0 + _S1
    ranges = {n: _S0, p: size, k: sympy.Integer(16)}
    extents = (_S0, size, sympy.Integer(16))
    flat = (n * size + p) * 16 + k
    assert dims.unpack(flat, extents, ranges) == [n, p, k]
    # Walked as one loop, the axes can't be told apart.
    assert dims.unpack(p * 16 + k, (_S0, _S1, sympy.Integer(16)), {p: _S0 * _S1, k: 16}) is None
    # A part that may reach the next axis.
    assert dims.unpack(flat + 1, extents, ranges) is None
    assert dims.unpack(n * 8 + k, (_S0, sympy.Integer(8)), {n: _S0, k: sympy.Integer(8)}) == [n, k]
    assert dims.unpack(n * 8 + k + 2, (_S0, sympy.Integer(8)), {n: _S0, k: sympy.Integer(6)}) == [
        n,
        k + 2,
    ]


@pytest.mark.parametrize("choose", [dims.largest, dims.smallest])
def test_a_choice_is_made_once(choose: Callable[[sympy.Expr, sympy.Expr], sympy.Expr]) -> None:
    """SymPy takes seconds for long sums; each branch of a condition repeats those of the others."""
    a, b = dims.FloorDiv(_S0 + 7, sympy.Integer(2)), _S1 - dims.FloorDiv(_S0, sympy.Integer(3))
    assert choose(a, b) is choose(a, b)


@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_divisions_leave_out_what_is_divisible(n: int) -> None:
    two = sympy.Integer(2)
    size = 4 * _S0 - 2 * _S1 + 3
    assert dims.FloorDiv(4 * _S0 - 2, two) == 2 * _S0 - 1
    assert dims.FloorDiv(6 * dims.FloorDiv(_S0, two), two) == 3 * dims.FloorDiv(_S0, two)
    assert int(dims.FloorDiv(size, two).subs({_S0: n, _S1: 5})) == (4 * n - 7) // 2
    assert int(dims.FloorMod(size + _S0, two).subs({_S0: n, _S1: 5})) == (5 * n - 7) % 2


def test_choices_know_how_quotients_are_rounded() -> None:
    """What an axis is after it was halved and doubled is never more than what it was."""
    half = dims.FloorDiv(_S0, sympy.Integer(2))
    quarter = dims.FloorDiv(half, sympy.Integer(2))
    assert dims.smallest(2 * half, _S0) == 2 * half
    assert dims.largest(4 * quarter, _S0) == _S0
    assert dims.smallest(2 * half + 2, _S0) == _S0
    assert dims.smallest(2 * half + 1, _S0) == _S0
    assert dims.smallest(3 * half, _S0).has(sympy.Min)
