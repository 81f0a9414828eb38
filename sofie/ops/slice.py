"""Slice: https://onnx.ai/onnx/operators/onnx__Slice.html"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import onnx_ir
import onnx_shape_inference as inference
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Slice, Tensor
from sofie.ops.axes import from_front, require_axes
from sofie.ops.registry import operator

# Indices this far out mean "to the end".
_FAR = 2**31


def _check(node: Node) -> Iterator[str]:
    for position, what in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps")):
        if node.has(position) and node.known(position) is None:
            yield f"a number of {what} that is not known at build time"


@inference.registry.register("", "Slice", since_version=10)  # type: ignore[untyped-decorator]
def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
    """Extents in terms of sizes and elements, clamped as NumPy does; unknown where one is."""
    data = node.inputs[0]
    assert data is not None
    if data.shape is None or data.dtype is None:
        return
    given = Node(node, 0)
    if all(not given.has(i) or given.known(i) is not None for i in range(1, 5)):
        try:
            shape = onnx_ir.Shape([dims.as_dim(cut.count) for cut in _cuts(given)])
        except ValueError:  # An extent is not known.
            shape = onnx_ir.Shape([ctx.new_symbolic_dim() for _ in data.shape])
    else:
        shape = onnx_ir.Shape([ctx.new_symbolic_dim() for _ in data.shape])
    ctx.set_shape_and_dtype(node.outputs[0], shape, data.dtype)
    values = ctx.get_symbolic_value(data)
    if values is not None and len(data.shape) == 1 and all(isinstance(d, int) for d in shape):
        first, count, step = _cuts(given)[0]
        if first.is_Integer and step.is_Integer:
            chosen = [values[int(first + i * step)] for i in range(int(count))]
            ctx.set_symbolic_value(node.outputs[0], chosen)


@operator("Slice", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view; the extents are the inferred ones."""
    x = inputs[0]
    assert x is not None
    axes = node.known(3) if node.has(3) else None
    if axes is not None:
        require_axes(b, axes, x.rank)
    cuts = _cuts(node)
    for step in node.known(4) or ():
        zero = dims.Equals(step, dims.ZERO)
        b.require(zero, dims.ZERO, f"{node.label}: Slice with a step of 0")
    shape = [cut.count for cut in cuts]
    return [Slice(x, shape, [cut.first for cut in cuts], [cut.step for cut in cuts])]


class _Cut(NamedTuple):
    """First index, number of elements and step along an axis."""

    first: dims.Expr
    count: dims.Expr
    step: dims.Expr


def _cuts(node: Node) -> list[_Cut]:
    """What is cut of every axis."""
    shape = node.shape(0)
    starts, stops = node.known(1) or (), node.known(2) or ()
    every = tuple(sympy.Integer(a) for a in range(len(starts)))
    axes = (node.known(3) if node.has(3) else None) or every
    steps = (node.known(4) if node.has(4) else None) or tuple(dims.ONE for _ in axes)
    cuts = []
    for axis, extent in enumerate(shape):
        cut = _Cut(dims.ZERO, extent, dims.ONE)
        for meant, start, stop, step in zip(axes, starts, stops, steps, strict=True):
            here = dims.Equals(from_front(meant, len(shape)), sympy.Integer(axis))
            if here == 0:
                continue
            other = _bounds(start, stop, step, extent)
            cut = _Cut(*(dims.Where(here, a, c) for a, c in zip(other, cut, strict=True)))
        cuts.append(cut)
    return cuts


def _bounds(start: dims.Expr, stop: dims.Expr, step: dims.Expr, extent: dims.Expr) -> _Cut:
    """The cut as NumPy counts it."""
    back = dims.IsNegative(step)
    low, high = -back, sympy.expand(extent - back)
    first = _clamp(start, dims.ZERO, high, extent)
    last = _clamp(stop, low, high, extent)
    if step.is_Integer:
        span = dims.minus(last, first) if back == 0 else dims.minus(first, last)
        size = sympy.Integer(max(abs(int(step)), 1))
        count = dims.FloorDiv(sympy.expand(span + size - 1), size)
    else:
        count = -dims.FloorDiv(sympy.expand(first - last), step)
    return _Cut(first, dims.largest(count, dims.ZERO), step)


def _clamp(index: dims.Expr, low: dims.Expr, high: dims.Expr, extent: dims.Expr) -> dims.Expr:
    """An index, counted from the end where negative, kept between two others."""
    if index.is_Integer and int(index) >= _FAR:
        return high
    if index.is_Integer and int(index) <= -_FAR:
        return low
    index = sympy.expand(index + extent * dims.IsNegative(index))
    return dims.clamp(index, low, high)
