"""Slice: https://onnx.ai/onnx/operators/onnx__Slice.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Slice, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    for position, what in ((1, "starts"), (3, "axes"), (4, "steps")):
        if node.has(position) and node.known(position) is None:
            yield f"{what} that depend on data"
    steps = node.known(4) if node.has(4) else ()
    if any(not s.is_Integer for s in steps or ()):
        yield "steps that depend on sizes"


@operator("Slice", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view; the extents are the inferred ones."""
    x = inputs[0]
    assert x is not None
    given_starts = node.known(1) or ()
    axes = [int(a) % x.rank for a in (node.known(3) or range(len(given_starts)))]
    given_steps = node.known(4) or tuple(dims.ONE for _ in axes)
    starts, steps = [dims.ZERO] * x.rank, [dims.ONE] * x.rank
    for axis, start, step in zip(axes, given_starts, given_steps, strict=True):
        starts[axis] = _clamp(start, x.shape[axis], int(step))
        steps[axis] = step
    return [Slice(x, node.out_shape(), starts, steps)]


def _clamp(start: dims.Expr, extent: dims.Expr, step: int) -> dims.Expr:
    """The first index, negative ones counted from the end, within the axis."""
    if start.could_extract_minus_sign():
        start = start + extent
    low = dims.ZERO
    high = extent if step > 0 else extent - 1
    if start == low:
        return start
    return sympy.Min(sympy.Max(start, low), high) if not _within(start, high) else start


def _within(start: dims.Expr, high: dims.Expr) -> bool:
    room = sympy.expand(high - start)
    return bool(start.is_nonnegative) and bool(room.is_nonnegative)
