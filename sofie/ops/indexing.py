"""Indices that come from tensors, and indices that may lie outside of one."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, INT64
from sofie.ir.expr import Call, Expr, Index, Indirect, compare
from sofie.ir.node import Node


def check_indices(node: Node, position: int = 1) -> Iterator[str]:
    """What an operand of indices must not be."""
    if node.dtype(position) not in (dtype.INT32, dtype.INT64):
        yield f"indices of type {node.dtype(position).name}"


def wrapped(index: Expr, extent: dims.Expr) -> Expr:
    """A tensor's index into an axis: counted from the end where negative, kept inside the axis.

    ONNX leaves indices outside of [-extent, extent - 1] undefined; no memory outside of the tensor
    is read for them.
    """
    return Call(INT64, "sofie::kernels::WrapIndex({0}, {1})", (index, Index(INT64, extent)))


def indirect(index: Expr, extent: dims.Expr) -> Indirect:
    """A tensor's index into an axis, to be used in other indices."""
    return Indirect(wrapped(index, extent))


def require_elements(b: Builder, indices: dims.Shape, axes: dims.Shape) -> None:
    """Demands that axes that indices point into are not empty, unless there are no indices.

    Args:
      b: the builder.
      indices: extents of the tensor of indices.
      axes: the axes' extents.
    """
    for extent in axes:
        count = dims.smallest(dims.product(indices), dims.ONE)
        b.require(count, extent, f"{b.node}: indices into an axis without elements")


def inside(
    position: Sequence[dims.Expr],
    extents: Sequence[dims.Expr],
    margins: Sequence[tuple[dims.Expr, dims.Expr]],
) -> Expr | None:
    """Whether an index exists; None where it always does.

    Args:
      position: the index.
      extents: of the axes.
      margins: by how much the index may lie below 0 and above the last element.
    """
    conditions = []
    for i, extent, (before, after) in zip(position, extents, margins, strict=True):
        if not before.is_nonpositive:
            conditions.append(compare(">=", i, dims.ZERO))
        if not after.is_nonpositive:
            conditions.append(compare("<", i, extent))
    return both(conditions)


def both(conditions: Sequence[Expr]) -> Expr | None:
    """Whether all of the conditions hold; None for none."""
    if not conditions:
        return None
    return functools.reduce(lambda a, b: Call(BOOL, "{0} && {1}", (a, b)), conditions)


def index_depth(node: Node, position: int = 1) -> int:
    """How many axes an index tuple, along the last axis of an operand, points into."""
    depth = node.shape(position)[-1]
    batch, rank = node.attr_int("batch_dims", 0), len(node.shape(0))
    if not depth.is_Integer:
        raise ValueError("index tuples of symbolic length")
    if int(depth) > rank - batch:
        raise ValueError(f"index tuples of length {depth} for rank {rank}")
    return int(depth)
