"""Symbolic sizes: integers that a session learns at run time.

A size is a SymPy expression over the model's symbols: ``s0``, ``s1``, ... are dimensions of the
inputs, in order of first use; ``d0``, ``d1``, ... are elements of small tensors that the host reads
before it launches what depends on them. Dimensions are never negative; an element may be anything.
``p0_0``, ``p0_1``, ... are strides of inputs that are given with them.
Expressions made of symbols alone are evaluated on the host, once per set of sizes.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import sympy
from onnx_ir import _symbolic_shapes
from onnx_shape_inference import _symbolic_shapes as inference_symbols

# A sympy.Expr; SymPy carries no annotations.
Expr: TypeAlias = Any
Shape: TypeAlias = tuple[Any, ...]

ZERO: Expr = sympy.Integer(0)
ONE: Expr = sympy.Integer(1)


class SizeError(ValueError):
    """A size that no run can have."""


class FloorDiv(sympy.Function):
    """``floor(a / b)`` of integers, kept whole so that it prints as one division; 0 if b is 0."""

    nargs = 2
    is_integer = True

    def _eval_is_nonnegative(self) -> bool | None:
        a, b = self.args
        return True if a.is_nonnegative and b.is_nonnegative else None

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        """Folds divisions of numbers and by one; takes out what is divisible."""
        if b == 1:
            return a
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b)) if b != 0 else ZERO
        whole, rest = _multiples(a, b)
        result = whole + cls(rest, b) if whole != 0 else None
        # What is known not to be negative must be known so afterwards.
        return (
            None if result is None or (a.is_nonnegative and not result.is_nonnegative) else result
        )


def _multiples(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """What is divisible by a number, divided by it, and the rest; 0 and ``a`` for other ``b``."""
    whole, rest = ZERO, ZERO
    if not b.is_Integer or b <= 0:
        return ZERO, a
    for term in sympy.Add.make_args(a):
        factor, other = term.as_coeff_Mul()
        divisible = factor.is_Integer and (other == 1 or factor % b == 0)
        quotient = sympy.Integer(factor // b) if divisible else ZERO
        whole += quotient * other
        rest += term - quotient * b * other
    return whole, rest


class FloorMod(sympy.Function):
    """``a - b * floor(a / b)`` of integers; a if b is 0."""

    nargs = 2
    is_integer = True

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_nonnegative else None

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        """Folds remainders of numbers and by one; leaves out what is divisible."""
        if b == 1:
            return ZERO
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b)) if b != 0 else a
        whole, rest = _multiples(a, b)
        return (
            None if whole == 0 or (a.is_nonnegative and not rest.is_nonnegative) else cls(rest, b)
        )


class NotOne(sympy.Function):
    """0 where the size is 1, else 1: the factor that makes an index broadcast."""

    nargs = 1
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Expr) -> Expr | None:
        """Folds numbers."""
        if a.is_Integer:
            return ZERO if int(a) == 1 else ONE
        return None


class Broadcast(sympy.Function):
    """The size of an axis that broadcasts two sizes of which one may be 1 (and the other 0)."""

    nargs = 2
    is_integer = True

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(a.is_nonnegative for a in self.args) else None

    def _eval_is_positive(self) -> bool | None:
        return True if all(a.is_positive for a in self.args) else None

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        """Folds numbers and equal sizes; puts the arguments into a fixed order."""
        if a == 1 or a == b:
            return b
        if b == 1 or a.is_Integer:
            return a
        if b.is_Integer:
            return b
        ordered = sorted((a, b), key=sympy.default_sort_key)
        return None if ordered == [a, b] else cls(*ordered)


class IsNegative(sympy.Function):
    """1 where the integer is negative, else 0."""

    nargs = 1
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Expr) -> Expr | None:
        """Folds what has a known sign."""
        if a.is_negative:
            return ONE
        return ZERO if a.is_nonnegative else None


class Equals(sympy.Function):
    """1 where two numbers are equal, else 0."""

    nargs = 2
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        """Folds what is the same, and what differs at all sizes."""
        if a == b:
            return ONE
        return ZERO if (a - b).is_zero is False else None


class Where(sympy.Function):
    """The second argument where the first is not 0, else the third."""

    nargs = 3
    is_integer = True

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_nonnegative and self.args[2].is_nonnegative else None

    @classmethod
    def eval(cls, condition: Expr, then: Expr, other: Expr) -> Expr | None:
        """Folds known conditions and equal branches."""
        if condition.is_Integer:
            return then if condition != 0 else other
        return then if then == other else None


class Steps(sympy.Function):
    """How many numbers ``start``, ``start + delta``, ... lie before ``limit``; 0 if delta is 0.

    Integers are counted exactly, other numbers in double precision.
    """

    nargs = 3
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, start: Expr, limit: Expr, delta: Expr) -> Expr | None:
        """Folds numbers, and integers a fixed step apart."""
        if delta.is_Integer and int(delta) > 0 and start.is_integer and limit.is_integer:
            span = sympy.expand(limit - start + delta - 1)
            count = FloorDiv(span, delta)
            if count.is_Integer:
                return max(ZERO, count)
            return count if span.is_nonnegative else sympy.Max(count, ZERO)
        if all(a.is_number for a in (start, limit, delta)):
            return sympy.Integer(count_steps(*map(_number, (start, limit, delta))))
        return None


class Floor(sympy.Function):
    """The largest integer that a real number reaches, computed in double precision."""

    nargs = 1
    is_integer = True

    @classmethod
    def eval(cls, a: Expr) -> Expr | None:
        """Folds integers and numbers."""
        if a.is_integer:
            return a
        return sympy.Integer(math.floor(float(a))) if a.is_number else None


def _number(value: Expr) -> float | int:
    return int(value) if value.is_Integer else float(value)


def count_steps(start: float, limit: float, delta: float) -> int:
    """``Steps`` of numbers."""
    if delta == 0:
        return 0
    if all(isinstance(a, int) for a in (start, limit, delta)):
        return max(0, -int((start - limit) // delta))
    steps = (limit - start) / delta
    return max(0, math.ceil(steps)) if math.isfinite(steps) else 0


# Functions that C++ does not compute with real numbers.
INTEGER_FUNCTIONS = (FloorMod, NotOne, Broadcast, IsNegative, Equals, Where, Steps, Floor)

# What may stand in the text of a size besides what onnx_ir and shape inference read themselves.
for _table in (_symbolic_shapes._ALLOWED_FUNCTIONS, inference_symbols.ALLOWED_FUNCTIONS):
    _table.update({f.__name__: f for f in (FloorDiv, *INTEGER_FUNCTIONS, sympy.ceiling)})


def symbol(position: int) -> sympy.Symbol:
    """The model's symbol number ``position``. Sizes may be 0."""
    return _or_zero(sympy.Symbol(f"s{position}", integer=True, positive=True))


def iteration(number: int) -> sympy.Symbol:
    """The variable of repetition number ``number``: which of its iterations is under way."""
    return sympy.Symbol(f"t{number}", integer=True, nonnegative=True)


def stride(number: int, inside: int) -> sympy.Symbol:
    """The stride of an axis of input ``number`` that has ``inside`` axes inside of it.

    A session takes it from the view that it is given. It is not negative, but may be 0 where
    extents are not: nothing may be concluded from its sign.
    """
    return sympy.Symbol(f"p{number}_{inside}", integer=True)


def axes_inside(found: sympy.Symbol) -> int | None:
    """How many axes lie inside of the one that this is the stride of; None for no stride."""
    match = _STRIDE.fullmatch(found.name)
    return None if match is None else int(match[1])


def iterations(expr: Expr) -> set[sympy.Symbol]:
    """The variables of repetitions in an expression."""
    return {s for s in expr.free_symbols if s.name[0] == "t"}


def element(position: int, is_integer: bool = True) -> sympy.Symbol:
    """The model's tensor element number ``position``."""
    name = f"d{position}"
    return sympy.Symbol(name, integer=True) if is_integer else sympy.Symbol(name, real=True)


def is_element(found: sympy.Symbol) -> bool:
    """True for the elements of tensors."""
    return bool(_ELEMENT.fullmatch(found.name))


def depends_on_elements(expr: Expr) -> bool:
    """True where an element of a tensor, known at run time only, is among the symbols."""
    return any(is_element(found) for found in expr.free_symbols)


def is_known_on_host(found: sympy.Symbol) -> bool:
    """True for dimensions, strides, elements and iterations, False for what threads compute."""
    return bool(_SYMBOL.fullmatch(found.name))


_ELEMENT = re.compile(r"d\d+")
_STRIDE = re.compile(r"p\d+_(\d+)")
_SYMBOL = re.compile(rf"[sdt]\d+|{_STRIDE.pattern}")


def as_expr(dim: int | ir.SymbolicDim | Expr) -> Expr:
    """A size of onnx_ir (or a number) as an expression.

    Raises:
      ValueError: the size is unknown.
    """
    if isinstance(dim, ir.SymbolicDim):
        if dim.value is None:
            raise ValueError("unknown size")
        return _parse(dim.value)
    return sympy.sympify(dim)


def as_dim(expr: Expr) -> int | ir.SymbolicDim:
    """The inverse of ``as_expr``.

    The library takes every symbol for positive, which neither sizes nor elements of tensors need to
    be. What has elements, or is another size where none is 0, passes through it as the difference
    of two symbols of its own, ``x0 - y0``, of which it can conclude no more than of any integer.
    """
    if expr.is_Integer:
        return int(expr)
    if not depends_on_elements(expr) and _is_read_as_it_is(expr):
        return ir.SymbolicDim(expr)
    position = _POSITIONS.setdefault(expr, len(_OPAQUE))
    if position == len(_OPAQUE):
        _OPAQUE.append(expr)
    return ir.SymbolicDim(f"x{position} - y{position}")


def _is_read_as_it_is(expr: Expr) -> bool:
    chooses = expr.has(sympy.Function, sympy.Max, sympy.Min)
    return not chooses or bool(_parse(str(expr)) == expr)


# What stands behind as_dim's symbols.
_OPAQUE: list[Expr] = []
_POSITIONS: dict[Expr, int] = {}
_PLACEHOLDER = re.compile(r"([xy])(\d+)")


@functools.lru_cache(maxsize=100_000)
def _parse(text: str) -> Expr:
    """The expression that a size of onnx_ir is spelled as."""
    return _canonical(ir.SymbolicDim(text)._expr)  # The library offers it under this name alone.


def _canonical(expr: Expr) -> Expr:
    """SymPy's own floor, ceiling and Mod as ours, which print as integer operations."""

    def floor(argument: Expr) -> Expr:
        numerator, denominator = sympy.fraction(sympy.together(argument))
        return FloorDiv(numerator, denominator)

    def ceiling(argument: Expr) -> Expr:
        return -floor(-argument)

    expr = expr.xreplace({s: _or_zero(s) for s in expr.free_symbols})
    plain = expr.replace(sympy.ceiling, ceiling).replace(sympy.floor, floor)
    plain = plain.replace(sympy.Mod, FloorMod)
    meaning: dict[Expr, Expr] = {}
    for found in plain.free_symbols:
        match = _PLACEHOLDER.fullmatch(found.name)
        if match is not None and int(match[2]) < len(_OPAQUE):
            meaning[found] = _OPAQUE[int(match[2])] if match[1] == "x" else ZERO
    return plain.xreplace(meaning)


def if_positive(expr: Expr) -> Expr:
    """The expression where no size is 0."""
    positive = {
        s: sympy.Symbol(s.name, integer=True, positive=True)
        for s in expr.free_symbols
        if s.is_nonnegative
    }
    return sympy.expand(expr).xreplace(positive)


def at_most(extent: Expr) -> Expr:
    """A number that a product of sizes does not exceed: itself, without rounding down."""
    factors = sympy.Mul.make_args(extent)
    if not all(factor.is_nonnegative for factor in factors):
        return extent
    return sympy.Mul(*(f.args[0] / f.args[1] if isinstance(f, FloorDiv) else f for f in factors))


@functools.cache
def _or_zero(symbol: sympy.Symbol) -> sympy.Symbol:
    """A symbol that may be 0, in place of one of onnx_ir's, which are positive."""
    if not symbol.is_positive:
        return symbol
    return sympy.Symbol(symbol.name, integer=True, nonnegative=True)


@functools.lru_cache(maxsize=100_000)
def same(a: Expr, b: Expr) -> bool:
    """True where both are equal for all sizes."""
    return a == b or bool(sympy.expand(a - b) == 0)


def product(dims: Sequence[Expr]) -> Expr:
    """The product of sizes; 1 for none."""
    result = ONE
    for dim in dims:
        result = result * dim
    return result


def packed_strides(shape: Sequence[Expr], order: Sequence[int]) -> Shape:
    """Strides of a packed buffer whose axes lie in ``order``, outermost first."""
    strides: list[Expr] = [ZERO] * len(shape)
    running = ONE
    for axis in reversed(order):
        strides[axis] = running
        running = running * shape[axis]
    return tuple(strides)


def unpack(
    index: Expr, extents: Sequence[Expr], ranges: Mapping[sympy.Symbol, Expr]
) -> list[Expr] | None:
    """A row-major index as indices of its axes, where that takes no division.

    Args:
      index: linear in loop variables, such as ``(i0 * s1 + i1) * 16 + i2``.
      extents: of the axes.
      ranges: how many values each loop variable takes, from 0 on.

    Returns:
      One index an axis, such as ``[i0, i1, i2]``; None where a division would be needed.
    """
    rest = sympy.expand(index)
    found: list[Expr] = []
    for extent in reversed(extents[1:]):
        parts = _linear(rest, ranges)
        if parts is None or extent == 0:
            return None
        quotient = remainder = ZERO
        left: list[tuple[Expr, Expr]] = []
        for variable, factor in parts:
            share = sympy.cancel(factor / extent)
            if sympy.fraction(share)[1] == 1:
                quotient = quotient + share * variable
            else:
                remainder = remainder + factor * variable
                left.append((variable, factor))
        if not _stays_below(left, extent, ranges):
            return None
        found.append(remainder)
        rest = sympy.expand(quotient)
    return [rest, *reversed(found)]


def stays_below(index: Expr, extent: Expr, ranges: Mapping[sympy.Symbol, Expr]) -> bool:
    """True where an index is linear in loop variables and always in [0, extent).

    Args:
      index: the index.
      extent: the bound.
      ranges: how many values each loop variable takes, from 0 on.
    """
    parts = _linear(sympy.expand(index), ranges)
    return parts is not None and _stays_below(parts, extent, ranges)


def _linear(index: Expr, ranges: Mapping[sympy.Symbol, Expr]) -> list[tuple[Expr, Expr]] | None:
    """An index as variables and their factors (1 for the constant); None where it is not linear."""
    parts: list[tuple[Expr, Expr]] = []
    rest = index
    for variable in sorted(index.free_symbols, key=lambda s: str(s.name)):
        if variable in ranges:
            factor = index.coeff(variable)
            parts.append((variable, factor))
            rest = sympy.expand(rest - factor * variable)
    if any(v in ranges or not is_known_on_host(v) for v in rest.free_symbols):
        return None
    if any(v in ranges for _, factor in parts for v in factor.free_symbols):
        return None
    return parts if rest == 0 else [*parts, (ONE, rest)]


def _stays_below(
    parts: Sequence[tuple[Expr, Expr]], extent: Expr, ranges: Mapping[sympy.Symbol, Expr]
) -> bool:
    """True where the sum of the parts is never negative and always less than the extent."""
    if not parts:
        return True
    if len(parts) == 1 and parts[0][1] == 1 and parts[0][0] in ranges:
        return bool(sympy.expand(extent - ranges[parts[0][0]]).is_nonnegative)
    largest = ZERO
    for variable, factor in parts:
        if not factor.is_nonnegative:
            return False
        largest = largest + factor * (ranges[variable] - 1 if variable in ranges else ONE)
    room = sympy.expand(extent - largest)
    return bool(room.is_Integer and room > 0)


def broadcast(a: Expr, b: Expr) -> Expr:
    """The size of an axis that broadcasts ``a`` with ``b``."""
    return a if same(a, b) else Broadcast(a, b)


# SymPy takes its time over choices between long sums, and branches repeat them.
@functools.lru_cache(maxsize=4096)
def largest(a: Expr, b: Expr) -> Expr:
    """The larger one, without a choice where the sizes leave none."""
    difference = sympy.expand(a - b)
    if _is_not_negative(difference):
        return a
    return b if _is_not_negative(-difference) else sympy.Max(a, b)


@functools.lru_cache(maxsize=4096)
def smallest(a: Expr, b: Expr) -> Expr:
    """The smaller one, likewise."""
    difference = sympy.expand(a - b)
    if _is_not_negative(-difference):
        return a
    return b if _is_not_negative(difference) else sympy.Min(a, b)


def _is_not_negative(total: Expr) -> bool:
    """True where it is seen that a sum is never negative, whatever its quotients are rounded to."""
    while not total.is_nonnegative:
        terms = [term.as_coeff_Mul() for term in sympy.Add.make_args(total)]
        found = [(f, q) for f, q in terms if isinstance(q, FloorDiv) and q.args[1].is_positive]
        if not found:
            return False
        # The outermost one first: what is inside of it may be another term.
        factor, quotient = max(found, key=lambda term: term[1].count_ops())
        a, b = quotient.args
        # It is at most a / b, and less than 1 below.
        bound = a if factor < 0 else a - b + 1
        total = sympy.expand(total + factor * (bound / b - quotient))
    return True


def clamp(value: Expr, low: Expr, high: Expr) -> Expr:
    """A value kept between two others; ``high`` where they contradict each other."""
    return smallest(largest(value, low), high)


def minus(a: Expr, b: Expr) -> Expr:
    """``a - b`` with a maximum or minimum outermost, so that equal sizes look equal."""
    for choice, rest, sign in ((a, -b, 1), (b, a, -1)):
        if isinstance(choice, sympy.Max | sympy.Min):
            grows = isinstance(choice, sympy.Max) == (sign == 1)
            parts = [sympy.expand(sign * part + rest) for part in choice.args]
            return functools.reduce(largest if grows else smallest, parts)
    return sympy.expand(a - b)
