"""Sums of powers and their roots: p-norms."""

from sofie.ir.expr import Call, Expr, Literal
from sofie.ops.reduction import magnitude, square


def power(value: Expr, p: int) -> Expr:
    """``|value|`` to the power ``p``."""
    if p == 2:
        return square(value)
    if p == 1:
        return magnitude(value)
    exponent = Literal(value.dtype, p)
    return Call(value.dtype, "sofie::kernels::Pow({0}, {1})", (magnitude(value), exponent))


def root(value: Expr, p: int) -> Expr:
    """The ``p``-th root of a sum of powers."""
    if p == 1:
        return value
    if p == 2:
        return Call(value.dtype, "sofie::kernels::Sqrt({0})", (value,))
    return Call(value.dtype, "sofie::kernels::Pow({0}, {1})", (value, Literal(value.dtype, 1 / p)))
