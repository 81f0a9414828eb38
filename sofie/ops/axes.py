"""Axes that are an operand: numbers, or elements of a tensor that the host reads.

How many axes there are is part of the model, so ranks never depend on data. Which ones they are
may: then extents are selected on the host, and kernels loop over every axis that might be meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.node import Node


def operand_axes(node: Node, position: int = 1) -> tuple[dims.Expr, ...] | None:
    """The axes, from the attribute (older opsets) or the input.

    Returns:
      Any may be negative; none if there are none; None if they are not known.
    """
    attribute = node.attr_ints("axes")
    if attribute is not None:
        return tuple(sympy.Integer(a) for a in attribute)
    return node.known(position) if node.has(position) else ()


def from_front(axis: dims.Expr, rank: int) -> dims.Expr:
    """An axis counted from the front."""
    return sympy.expand(axis + rank * dims.IsNegative(axis))


def named(axes: Sequence[dims.Expr], rank: int) -> list[dims.Expr]:
    """For each axis of a tensor: 1 where it is among ``axes``, else 0."""
    front = [from_front(axis, rank) for axis in axes]
    return [
        sympy.Max(dims.ZERO, *(dims.Equals(axis, sympy.Integer(a)) for axis in front))
        for a in range(rank)
    ]


def require_axes(b: Builder, axes: Sequence[dims.Expr], rank: int) -> None:
    """Demands that axes lie in [-rank, rank) and differ.

    Raises:
      ValueError: they don't, and are known.
    """
    for axis in axes:
        text = f"{b.node}: an axis is out of range for rank {rank}"
        b.require(sympy.Integer(-rank), axis, text)
        b.require(axis, sympy.Integer(rank - 1), text)
    distinct = sum(named(axes, rank), dims.ZERO)
    b.require(sympy.Integer(len(axes)), distinct, f"{b.node}: the same axis is given twice")


def without(shape: Sequence[dims.Expr], hits: Sequence[dims.Expr], rank: int) -> dims.Shape:
    """The ``rank`` extents whose axes are not among ``hits``."""
    result = []
    for position in range(rank):
        extent, before = dims.ONE, dims.ZERO
        choices = []
        for size, hit in zip(shape, hits, strict=True):
            choices.append(((1 - hit) * dims.Equals(before, sympy.Integer(position)), size))
            before = before + 1 - hit
        for condition, size in reversed(choices):
            extent = dims.Where(condition, size, extent)
        result.append(extent)
    return tuple(result)


def inserted(shape: Sequence[dims.Expr], hits: Sequence[dims.Expr]) -> dims.Shape:
    """``shape`` with extents of 1 where ``hits`` are."""
    result, before = [], dims.ZERO
    for hit in hits:
        extent = dims.ONE
        for position in reversed(range(len(shape))):
            here = dims.Equals(before, sympy.Integer(position))
            extent = dims.Where(here, shape[position], extent)
        result.append(dims.Where(hit, dims.ONE, extent))
        before = before + 1 - hit
    return tuple(result)
