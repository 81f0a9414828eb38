"""Values of symbolic sizes: at given sizes, and at nominal ones, which order strides."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from sofie.ir import dims

# Sizes at which strides are compared when an order of loops must be chosen. Any distinct values
# above one do: they order strides, they never enter generated code.
_NOMINAL = (64, 101, 103, 107, 109, 113, 127, 131)
# The same for elements of tensors; small, for they may be axes or counts.
_NOMINAL_ELEMENT = 2


@functools.lru_cache(maxsize=100_000)
def nominal(expr: dims.Expr) -> int:
    """A number that orders strides and extents by size; see ``_NOMINAL``."""

    def lookup(found: sympy.Symbol) -> int:
        if dims.is_element(found):
            return _NOMINAL_ELEMENT
        if (inside := dims.axes_inside(found)) is not None:
            return int(_NOMINAL[-1] ** inside)
        index = int(found.name[1:]) if found.name[1:].isdigit() else 0
        return _NOMINAL[index % len(_NOMINAL)]

    return int(evaluate(expr, lookup))


def evaluate(value: dims.Expr, lookup: Callable[[sympy.Symbol], Any]) -> Any:
    """The expression's value, where ``lookup`` gives those of symbols: numbers or NumPy arrays."""
    if value.is_Integer:
        return int(value)
    if value.is_Float:
        return float(value)
    if value.is_Symbol:
        return lookup(value)
    if value.is_Mul:
        coefficient, rest = value.as_coeff_Mul()
        if coefficient.is_Rational and not coefficient.is_Integer:
            return evaluate(rest * coefficient.p, lookup) // int(coefficient.q)
    parts = [evaluate(a, lookup) for a in value.args]
    if value.is_Add:
        return sum(parts)
    if value.is_Mul:
        return math.prod(parts[1:], start=parts[0])
    if value.is_Pow:
        return parts[0] ** parts[1]
    if isinstance(value, dims.FloorDiv | dims.FloorMod):
        a, b = parts
        whole = _where(b == 0, 0, a // _where(b == 0, 1, b))
        return whole if isinstance(value, dims.FloorDiv) else a - b * whole
    if isinstance(value, dims.Broadcast):
        return _where(parts[0] == 1, parts[1], parts[0])
    if isinstance(value, dims.NotOne):
        return _where(parts[0] == 1, 0, 1)
    if isinstance(value, dims.IsNegative):
        return _where(parts[0] < 0, 1, 0)
    if isinstance(value, dims.Equals):
        return _where(parts[0] == parts[1], 1, 0)
    if isinstance(value, dims.Where):
        return _where(parts[0] != 0, parts[1], parts[2])
    if isinstance(value, dims.Floor):
        return math.floor(parts[0])
    if isinstance(value, dims.Steps):
        return dims.count_steps(*parts)
    if isinstance(value, sympy.Max):
        return functools.reduce(lambda a, b: _where(a < b, b, a), parts)
    if isinstance(value, sympy.Min):
        return functools.reduce(lambda a, b: _where(b < a, b, a), parts)
    raise ValueError(f"no value for the size expression {value} ({type(value).__name__})")


def _where(condition: Any, then: Any, other: Any) -> Any:
    """A choice for each element of an array, or one of two of Python's numbers as they are.

    NumPy's own numbers have 64 bits, and sizes of a damaged file may have more.
    """
    if np.ndim(condition):
        return np.where(condition, then, other)
    return then if condition else other
