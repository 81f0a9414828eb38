"""Symbolic sizes as C++ on signed integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims


def to_cpp(expr: dims.Expr, name: Callable[[sympy.Symbol], str]) -> str:
    """The expression in C++ on signed integers, every symbol spelled by ``name``.

    It may call functions of ``sofie/runtime/sizes.h``.

    Raises:
      SizeError: it has numbers that are too large for that.
    """
    return _print(sympy.sympify(expr), name)


def _print(expr: dims.Expr, name: Callable[[sympy.Symbol], str]) -> str:
    if expr.is_Integer:
        if abs(int(expr)) >= 1 << 63:
            raise dims.SizeError(f"the number {expr} in a size has more than 64 bits")
        return str(int(expr))
    if expr.is_Symbol:
        return name(expr)
    if expr.is_Add:
        return _print_sum(expr, name)
    if expr.is_Mul:
        coefficient, rest = expr.as_coeff_Mul()
        if coefficient.is_Rational and not coefficient.is_Integer:
            whole = _factor(rest * coefficient.p, name)
            return f"{whole} / {coefficient.q}"
        return " * ".join(_factor(f, name) for f in _ordered(expr.as_ordered_factors()))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return " * ".join([_factor(expr.base, name)] * int(expr.exp))
    if isinstance(expr, dims.FloorDiv | dims.FloorMod):
        a, b = expr.args
        if _truncates(a, b):
            operation = "/" if isinstance(expr, dims.FloorDiv) else "%"
            return f"{_factor(a, name)} {operation} {_factor(b, name)}"
        return f"sofie::{type(expr).__name__}({_print(a, name)}, {_print(b, name)})"
    if isinstance(expr, dims.Broadcast):
        a, b = (_factor(x, name) for x in expr.args)
        return f"({a} == 1 ? {b} : {a})"
    if isinstance(expr, dims.NotOne):
        return f"({_print(expr.args[0], name)} == 1 ? 0 : 1)"
    if isinstance(expr, dims.IsNegative):
        return f"({_print(expr.args[0], name)} < 0 ? 1 : 0)"
    if isinstance(expr, dims.Equals):
        a, b = _alike(expr.args, name)
        return f"({a} == {b} ? 1 : 0)"
    if isinstance(expr, dims.Where):
        condition, then, other = (_print(a, name) for a in expr.args)
        return f"({condition} != 0 ? {then} : {other})"
    if isinstance(expr, dims.Floor):
        return f"sofie::Floor({_real(expr.args[0], name)})"
    if isinstance(expr, dims.Steps):
        return f"sofie::Steps({', '.join(_alike(expr.args, name))})"
    if isinstance(expr, sympy.Max | sympy.Min):
        function = "sofie::Max" if isinstance(expr, sympy.Max) else "sofie::Min"
        arguments = sorted(expr.args, key=sympy.default_sort_key)
        text = _print(arguments[0], name)
        for argument in arguments[1:]:
            text = f"{function}({text}, {_print(argument, name)})"
        return text
    raise ValueError(f"no C++ for the size expression {expr} ({type(expr).__name__})")


def _alike(arguments: Sequence[dims.Expr], name: Callable[[sympy.Symbol], str]) -> list[str]:
    """Arguments as integers, or all as real numbers if one is."""
    if not any(a.has(sympy.Float) or a.is_integer is not True for a in arguments):
        return [_factor(a, name) for a in arguments]
    return [_real(a, name) for a in arguments]


def _real(expr: dims.Expr, name: Callable[[sympy.Symbol], str]) -> str:
    """The expression in C++ as a double."""
    # Of 0.0, too, SymPy says that it is an integer.
    if expr.is_Float:
        return f"({float(expr).hex()})"
    if expr.is_integer and not expr.has(sympy.Float):
        return f"static_cast<double>({_print(expr, name)})"
    if expr.is_Symbol:
        return name(expr)
    if expr.is_Add or expr.is_Mul:
        parts = [_real(a, name) for a in expr.args]
        return f"({(' + ' if expr.is_Add else ' * ').join(parts)})"
    if expr.is_Pow and expr.exp == -1:
        return f"(1.0 / {_real(expr.base, name)})"
    raise ValueError(f"no C++ for the number {expr} ({type(expr).__name__})")


def _truncates(a: dims.Expr, b: dims.Expr) -> bool:
    """True where C++'s own division of ``a`` by ``b`` rounds down and never divides by zero."""
    return bool(b.is_Integer and b > 0) and a.is_nonnegative


def _ordered(factors: Sequence[dims.Expr]) -> list[dims.Expr]:
    """Numbers first, then the rest in SymPy's own deterministic order."""
    return sorted(factors, key=lambda f: (not f.is_Integer,))


def _factor(expr: dims.Expr, name: Callable[[sympy.Symbol], str]) -> str:
    text = _print(expr, name)
    atomic = expr.is_Symbol or (expr.is_number and expr >= 0)
    bracketed = isinstance(
        expr,
        (
            sympy.Max,
            sympy.Min,
            dims.NotOne,
            dims.IsNegative,
            dims.Broadcast,
            dims.Equals,
            dims.Where,
        ),
    )
    return text if atomic or bracketed else f"({text})"


def _print_sum(expr: dims.Expr, name: Callable[[sympy.Symbol], str]) -> str:
    terms = sorted(expr.as_ordered_terms(), key=lambda t: bool(t.could_extract_minus_sign()))
    text = ""
    for term in terms:
        if text and term.could_extract_minus_sign():
            text += " - " + (_factor(-term, name) if (-term).is_Add else _print(-term, name))
        else:
            text += (" + " if text else "") + _print(term, name)
    return text
