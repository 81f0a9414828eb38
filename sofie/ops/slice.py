"""Slice: https://onnx.ai/onnx/operators/onnx__Slice.html"""

from collections.abc import Iterator, Sequence

import onnx_ir
import onnx_shape_inference as inference
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Slice, Tensor
from sofie.ops.registry import operator

# Indices this far out mean "to the end".
_FAR = 2**31


def _check(node: Node) -> Iterator[str]:
    for position, what in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps")):
        if node.has(position) and node.known(position) is None:
            yield f"{what} that depend on data"
    steps = node.known(4) if node.has(4) else ()
    if any(not s.is_Integer for s in steps or ()):
        yield "steps that depend on sizes"


@inference.registry.register("", "Slice", since_version=10)  # type: ignore[untyped-decorator]
def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
    """Extents in terms of sizes, clamped as NumPy does; unknown where an operand is."""
    data = node.inputs[0]
    assert data is not None
    if data.shape is None or data.dtype is None:
        return
    shape: list[int | onnx_ir.SymbolicDim] = list(data.shape)
    given = Node(node, 0)
    if all(not given.has(i) or given.known(i) is not None for i in range(1, 5)):
        for axis, (_, count, _) in _cuts(given).items():
            shape[axis] = dims.as_dim(count)
    else:
        axes = given.known(3) if given.has(3) else None
        for axis in range(len(shape)) if axes is None else [int(a) for a in axes]:
            shape[axis] = ctx.new_symbolic_dim()
    ctx.set_shape_and_dtype(node.outputs[0], onnx_ir.Shape(shape), data.dtype)


@operator("Slice", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view; the extents are the inferred ones."""
    x = inputs[0]
    assert x is not None
    cuts = _cuts(node)
    starts = [cuts[a][0] if a in cuts else dims.ZERO for a in range(x.rank)]
    steps = [cuts[a][2] if a in cuts else dims.ONE for a in range(x.rank)]
    shape = [cuts[a][1] if a in cuts else x.shape[a] for a in range(x.rank)]
    return [Slice(x, shape, starts, steps)]


def _cuts(node: Node) -> dict[int, tuple[dims.Expr, dims.Expr, dims.Expr]]:
    """First index, number of elements and step of every axis that is cut."""
    shape = node.shape(0)
    starts, stops = node.known(1) or (), node.known(2) or ()
    axes = [int(a) % len(shape) for a in (node.known(3) or range(len(starts)))]
    steps = node.known(4) or tuple(dims.ONE for _ in axes)
    cuts = {}
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        first, count = _bounds(start, stop, int(step), shape[axis])
        cuts[axis] = (first, count, step)
    return cuts


def _bounds(
    start: dims.Expr, stop: dims.Expr, step: int, extent: dims.Expr
) -> tuple[dims.Expr, dims.Expr]:
    """The first index and the number of elements, as NumPy counts them."""
    low, high = (dims.ZERO, extent) if step > 0 else (-dims.ONE, extent - 1)
    first = _clamp(start, dims.ZERO, high, extent)
    last = _clamp(stop, low, high, extent)
    span = dims.minus(last, first) if step > 0 else dims.minus(first, last)
    count = dims.FloorDiv(sympy.expand(span + abs(step) - 1), sympy.Integer(abs(step)))
    return first, dims.largest(count, dims.ZERO)


def _clamp(index: dims.Expr, low: dims.Expr, high: dims.Expr, extent: dims.Expr) -> dims.Expr:
    """An index, counted from the end where negative, kept between two others."""
    if index.is_Integer and int(index) >= _FAR:
        return high
    if index.is_Integer and int(index) <= -_FAR:
        return low
    index = sympy.expand(index + extent * dims.IsNegative(index))
    return dims.clamp(index, low, high)
