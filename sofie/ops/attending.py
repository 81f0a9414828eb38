"""What operators that attend have in common: heads, caches, masks."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, DType, wide
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Permute, Reshape, Tensor


def grouped_heads(node: Node) -> tuple[int, int]:
    """The numbers of heads of queries and of keys, where several of the former share a latter."""
    return node.attr_int("num_heads", 0), node.attr_int("kv_num_heads", 0)


def are_groups(heads: int, key_heads: int) -> bool:
    """True where so many heads of queries can share so many of keys."""
    return heads > 0 and key_heads > 0 and heads % key_heads == 0


def split_heads(x: Tensor, heads: dims.Expr) -> Tensor:
    """[batch, rows, heads * channels] as [batch, heads, rows, channels]."""
    batch, rows, hidden = x.shape
    parts = Reshape(x, (batch, rows, heads, dims.FloorDiv(hidden, heads)))
    return Permute(parts, (0, 2, 1, 3))


def join_heads(x: Tensor) -> Tensor:
    """The reverse."""
    batch, heads, rows, channels = x.shape
    return Reshape(Permute(x, (0, 2, 1, 3)), (batch, rows, heads * channels))


def behind(b: Builder, past: Tensor | None, x: Tensor) -> Tensor:
    """The rows of ``x`` behind those of ``past``, both [batch, heads, rows, channels]."""
    if past is None:
        return x
    for axis in (0, 1, 3):
        b.require_equal(past.shape[axis], x.shape[axis], f"extents of axis {axis} of past and new")
    before = past.shape[2]

    def element(index: Index) -> Expr:
        batch, head, row, channel = index
        old, new = past.load(index), x.load((batch, head, row - before, channel))
        return Select(x.dtype, compare("<", row, before), old, new)

    shape = (*x.shape[:2], before + x.shape[2], x.shape[3])
    return b.lazy(x.dtype, shape, [past, x], element)


def bias_of_mask(
    b: Builder, mask: Tensor, shape: dims.Shape, hidden: float, number: DType
) -> Tensor:
    """What a mask, of any shape that broadcasts, adds to scores of ``shape``.

    Args:
      b: where it is computed.
      mask: floating-point numbers to add; or booleans or integers, not 0 where a key is seen.
      shape: [batch, heads, rows, keys].
      hidden: what is added to the score of a key that is not seen.
      number: what scores are computed in.
    """
    b.require_broadcast(mask.shape, shape)
    if not mask.dtype.is_float:
        source = mask

        def element(index: Index) -> Expr:
            seen = source.load(index)
            if source.dtype is not BOOL:
                seen = Call(BOOL, "{0} != 0", (seen,))
            return Select(wide(number), seen, Literal(number, 0.0), Literal(number, hidden))

        mask = b.lazy(number, mask.shape, [mask], element)
    return Broadcast(mask, shape)


def rotated(
    b: Builder, x: Tensor, starts: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool
) -> Tensor:
    """Rotary embeddings: Su et al., "RoFormer", 2021.

    Args:
      b: where it is computed.
      x: [batch, heads, rows, channels].
      starts: [batch] the position of each sequence's first row; integers.
      cos: [positions, half of the channels that are turned], which are the first ones.
      sin: likewise.
      interleaved: pairs are neighbours; else they lie half of these channels apart.

    Positions are what data says, but nothing is read outside of the tables.
    """
    for axis, what in enumerate(("positions", "channels")):
        b.require_equal(cos.shape[axis], sin.shape[axis], f"{what} of the cosines and sines")
    positions, half = cos.shape
    b.require(dims.ONE, positions, f"{b.node}: cosines and sines of no position")
    b.require(
        2 * half, x.shape[3], f"{b.node}: {{low}} channels are turned, but there are {{high}}"
    )
    one = sympy.Integer(1)

    def element(index: Index) -> Expr:
        batch, head, row, channel = index
        place = Indirect(starts.load((batch,))) + row
        position = dims.clamp(place, dims.ZERO, positions - 1)
        pair = dims.FloorDiv(channel, 2) if interleaved else dims.FloorMod(channel, half)
        is_first = (
            compare("==", dims.FloorMod(channel, 2), dims.ZERO)
            if interleaved
            else compare("<", channel, half)
        )
        apart = one if interleaved else half
        here = x.load(index)
        factors = cos.load((position, pair)), sin.load((position, pair))

        def turned(sign: str, other: dims.Expr) -> Expr:
            operands = (here, factors[0], x.load((batch, head, row, other)), factors[1])
            return Call(x.dtype, f"{{0}} * {{1}} {sign} {{2}} * {{3}}", operands)

        value: Expr = Select(
            x.dtype, is_first, turned("-", channel + apart), turned("+", channel - apart)
        )
        if not dims.same(2 * half, x.shape[3]):
            value = Select(x.dtype, compare("<", channel, 2 * half), value, here)
        return value

    return b.lazy(x.dtype, x.shape, [x, starts, cos, sin], element)


def is_number(*extents: dims.Expr) -> bool:
    """True where the extents are the same in all runs, and not 0."""
    return all(bool(extent.is_Integer) and int(extent) > 0 for extent in extents)


def broadcasts_to(shape: Sequence[dims.Expr], result: Sequence[dims.Expr]) -> bool:
    """True where a shape broadcasts to another in all runs."""
    return len(shape) <= len(result) and all(
        extent == 1 or dims.same(extent, wanted)
        for extent, wanted in zip(reversed(shape), reversed(result), strict=False)
    )
