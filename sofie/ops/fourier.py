"""Discrete Fourier transforms: what DFT and STFT have in common.

Complex numbers are pairs along the last axis. A transform is a sum of products with a table of
cosines and sines, of which there are as many as the transform is long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOAT64, INT64
from sofie.ir.expr import Call, Expr, Indirect, Select, compare
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.elementwise import rounded

# The real and the imaginary part (None: 0) of a transform's input, from the output's index and a
# position in the sum.
Sample = Callable[[Index, dims.Expr], tuple[Expr, Expr | None]]


def complex_sample(x: Tensor, index: Index) -> tuple[Expr, Expr | None]:
    """A number of a tensor whose last axis has a real part alone, or both."""
    real = x.load((*index, dims.ZERO))
    return real, None if x.shape[-1] == 1 else x.load((*index, dims.ONE))


def transform(
    b: Builder,
    shape: dims.Shape,
    axis: Callable[[Index], dims.Expr],
    length: dims.Expr,
    terms: dims.Expr,
    sample: Sample,
    inputs: Sequence[Tensor],
    inverse: bool = False,
    mirrored: bool = False,
) -> Tensor:
    """``sum over n < terms of sample(index, n) * exp(-2 pi j n axis(index) / length)``.

    Args:
      b: the builder.
      shape: of the result; the last axis has the real part alone, or both parts.
      axis: the frequency (or, of an inverse transform, the time) that an index stands for.
      length: of the transform.
      terms: how many samples there are, at most ``length``.
      sample: the samples.
      inputs: what they are loaded from.
      inverse: the exponent is positive, and the sum is divided by the length.
      mirrored: the other samples are the conjugates of the first half's, and the result is real.
    """
    result = inputs[0].dtype
    number = dtype.wide(result)
    cast = f"static_cast<{number.cpp}>({{0}})"

    def wave(index: Index) -> Expr:
        ratio = (IndexExpr(INT64, index[1]), IndexExpr(INT64, length))
        angle = f"{2 * math.pi!r} * static_cast<double>({{0}}) / static_cast<double>({{1}})"
        cosine, sine = (
            Call(FLOAT64, f"sofie::kernels::{name}({angle})", ratio) for name in ("Cos", "Sin")
        )
        here = compare("==", index[0], dims.ZERO)
        return Call(number, cast, (Select(FLOAT64, here, cosine, sine),))

    table = b.lazy(number, (sympy.Integer(2), length), (), wave)
    table.strided()

    def element(index: Index, inner: Index) -> Expr:
        (n,) = inner
        # In 64 bits, whatever the width of indices is.
        turn = "(static_cast<int64_t>({0}) * static_cast<int64_t>({1})) % static_cast<int64_t>({2})"
        sizes = tuple(IndexExpr(INT64, i) for i in (axis(index), n, length))
        place = Indirect(Call(INT64, turn, sizes))
        cosine, sine = (table.load((dims.ONE * part, place)) for part in range(2))
        real, imaginary = (
            None if value is None else Call(number, cast, (value,)) for value in sample(index, n)
        )
        assert real is not None
        minus, plus = ("-", "+") if inverse else ("+", "-")
        if imaginary is None:
            first = Call(number, "{0} * {1}", (real, cosine))
            second = Call(number, f"{plus}({{0}} * {{1}})", (real, sine))
        else:
            parts = (real, imaginary, cosine, sine)
            first = Call(number, f"{{0}} * {{2}} {minus} {{1}} * {{3}}", parts)
            second = Call(number, f"{{1}} * {{2}} {plus} {{0}} * {{3}}", parts)
        if mirrored:
            # Sample 0 and, of an even length, the middle one are their own mirror images.
            own = "({0} == 0) || (2 * {0} == {1})"
            alone = Call(BOOL, own, sizes[1:])
            return Select(number, alone, first, Call(number, "{0} + {0}", (first,)))
        if shape[-1] == 1:
            return first
        is_real = Call(BOOL, "{0} == 0", (IndexExpr(INT64, index[-1]),))
        return Select(number, is_real, first, second)

    def finish(total: Expr) -> Expr:
        if inverse:
            quotient = f"{{0}} / static_cast<{number.cpp}>({{1}})"
            total = Call(number, quotient, (total, IndexExpr(INT64, length)))
        return rounded(total, result)

    combine = Combine("Sum", number)
    return Reduction(b, shape, (terms,), combine, element, finish, result, [*inputs, table])
