"""A 1x1 convolution of rearranged points, computed on the points before they are rearranged.

A linear map of the channels commutes with everything that only moves points (gathers, tiles,
transposes), and distributes over sums and over concatenation along the channels. EdgeConv's first
layer is the case that matters: with x_j one of k neighbours of x_i,

    W [x_i; x_j - x_i] = (W_a - W_b) x_i + W_b x_j,   W = [W_a W_b],

so the product is needed for P points instead of P k edges. How a model spells the edges (Tile or
Expand, Gather with which transposes) does not matter: what counts is which elements are loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import sympy

from sofie.ir import dim_values, dims
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Index, Load, Select, substitute
from sofie.ir.program import Buffer
from sofie.ir.tensor import Index as TensorIndex
from sofie.ir.tensor import Strided, Tensor

# The factored form adds a kernel; it is taken where it saves this share of the multiplications.
_SAVED_SHARE = 0.2


@dataclasses.dataclass
class _Term:
    """``weights`` times the channels of one row of a buffer.

    Attributes:
      buffer: rows of contiguous channels.
      row: which row, in terms of the loop variables.
      weights: float64 [outputs, channels].
    """

    buffer: Buffer
    row: dims.Expr
    weights: np.ndarray

    @property
    def rows(self) -> dims.Expr:
        """Rows of the buffer."""
        return sympy.cancel(self.buffer.elements / self.weights.shape[1])


def factored(
    b: Builder, name: str, x: Tensor, weights: np.ndarray, bias: Tensor | None, relu: bool
) -> Tensor | None:
    """``relu(weights @ x + bias)`` over the channels of ``x[N, C, ...]``, if it pays to factor it.

    Args:
      b: where the products are launched.
      name: of the weights.
      x: the input.
      weights: [outputs, C].
      bias: [outputs].
      relu: whether negative results become zero.

    Returns:
      The result [N, outputs, ...], or None if ``x`` is not a rearrangement of fewer points.
    """
    variables = b.loop_variables(x.rank)
    with b.iterating(variables, x.shape):
        value = b.settled(x.load(tuple(variables)))
    terms = _terms(value, variables[1], weights)
    if terms is None or not _pays(terms, x):
        return None
    shape = (x.shape[0], sympy.Integer(weights.shape[0]), *x.shape[2:])
    parts = _products(b, name, terms, x)

    def element(index: TensorIndex) -> Expr:
        place = dict(zip(variables, index, strict=True))
        total: Expr | None = None
        for term, (product, column) in zip(terms, parts, strict=True):
            width = product.shape[2]
            # The output's channel may be any expression; the row was found with the input's.
            load = Load(x.dtype, product.buffer, term.row * width + column + variables[1])
            moved = substitute(load, lambda _: None, lambda e: e.xreplace(place))
            total = moved if total is None else Call(x.dtype, "{0} + {1}", (total, moved))
        assert total is not None
        if bias is not None:
            total = Call(x.dtype, "{0} + {1}", (total, bias.load(index[1:2])))
        return Call(x.dtype, "sofie::kernels::Relu({0})", (total,)) if relu else total

    return b.lazy(x.dtype, shape, [x], element)


def _terms(value: Expr, channel: sympy.Symbol, weights: np.ndarray) -> list[_Term] | None:
    """The input as a sum of buffer rows; None where it is anything else."""
    terms: list[_Term] = []
    for low, high, branch in _branches(value, channel, 0, weights.shape[1]):
        summands = _summands(branch, 1)
        if summands is None:
            return None
        for sign, load in summands:
            row = _row(load, channel, low, high)
            if row is None:
                return None
            part = sign * weights[:, low:high].astype(np.float64)
            for known in terms:
                if known.buffer is load.buffer and _same_row(known.row, row):
                    known.weights = known.weights + part
                    break
            else:
                terms.append(_Term(load.buffer, row, part))
    return terms


def _branches(
    value: Expr, channel: sympy.Symbol, low: int, high: int
) -> list[tuple[int, int, Expr]]:
    """The ranges of channels that a concatenation is made of, and their expressions."""
    if isinstance(value, Select) and isinstance(value.condition, Call):
        condition = value.condition
        if condition.template == "{0} < {1}" and all(isinstance(a, Index) for a in condition.args):
            index, bound = (a.value for a in condition.args if isinstance(a, Index))
            if index == channel and bound.is_Integer and low < int(bound) < high:
                middle = int(bound)
                left = _branches(value.then, channel, low, middle)
                return left + _branches(value.other, channel, middle, high)
    return [(low, high, value)]


def _summands(value: Expr, sign: int) -> list[tuple[int, Load]] | None:
    """The signed loads that a value is the sum of."""
    if isinstance(value, Load):
        return None if value.is_weight else [(sign, value)]
    if not isinstance(value, Call):
        return None
    signs = {"{0} + {1}": (sign, sign), "{0} - {1}": (sign, -sign), "-{0}": (-sign,)}
    if value.template not in signs:
        return None
    found: list[tuple[int, Load]] = []
    for part_sign, argument in zip(signs[value.template], value.args, strict=True):
        part = _summands(argument, part_sign)
        if part is None:
            return None
        found += part
    return found


def _row(load: Load, channel: sympy.Symbol, low: int, high: int) -> dims.Expr | None:
    """Which row of its buffer is loaded, if the channels are all of that row, in order."""
    buffer = load.buffer
    if not buffer.order or buffer.shape[buffer.order[-1]] != high - low:
        return None
    rest = sympy.expand(load.offset - channel + low)
    if channel in rest.free_symbols:
        return None
    row = sympy.expand(rest / (high - low))
    whole = all(t.as_coeff_Mul()[0].is_Integer for t in sympy.Add.make_args(row))
    return row if whole else None


def _same_row(a: dims.Expr, b: dims.Expr) -> bool:
    return dims.same(a, b)


def _pays(terms: Sequence[_Term], x: Tensor) -> bool:
    """True where fewer multiplications remain."""
    points = dim_values.nominal(dims.product((x.shape[0], *x.shape[2:])))
    direct = points * int(x.shape[1])
    left = sum(dim_values.nominal(t.rows) * t.weights.shape[1] for t in terms)
    return bool(left <= (1 - _SAVED_SHARE) * direct)


def _products(
    b: Builder, name: str, terms: Sequence[_Term], x: Tensor
) -> list[tuple[Strided, int]]:
    """One product for each buffer; where each term's columns begin in it."""
    placed: dict[int, tuple[Strided, int]] = {}
    for buffer in {id(t.buffer): t.buffer for t in terms}.values():
        group = [t for t in terms if t.buffer is buffer]
        stacked = np.concatenate([t.weights for t in group]).astype(x.dtype.numpy)
        width, columns = sympy.Integer(stacked.shape[1]), sympy.Integer(stacked.shape[0])
        rows = group[0].rows
        source = Strided(b, buffer, (dims.ONE, rows, width), (dims.ZERO, width, dims.ONE))
        constant = b.constant(f"{name}.factored", x.dtype, stacked)
        right = Strided(
            b, constant.buffer, (dims.ONE, width, columns), (dims.ZERO, dims.ONE, width)
        )
        product = b.output(x.dtype, (dims.ONE, rows, columns))
        b.matmul(source, right, product)
        start = 0
        for term in group:
            placed[id(term)] = (product, start)
            start += term.weights.shape[0]
    return [placed[id(t)] for t in terms]
