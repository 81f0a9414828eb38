"""Pad: https://onnx.ai/onnx/operators/onnx__Pad.html

Negative pads remove elements; what the other modes repeat is what is left then, as in ONNX Runtime.
"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Slice, Tensor
from sofie.ops.axes import from_front, require_axes
from sofie.ops.indexing import inside
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator

_MODES = ("constant", "edge", "reflect", "wrap")


def _check(node: Node) -> Iterator[str]:
    mode = node.attr_string("mode", "constant")
    if mode not in _MODES:
        yield f"the mode {mode!r}"
    if node.has(1) and node.known(1) is None:
        yield "pads that depend on data"
    if node.has(3) and node.known(3) is None:
        yield "axes that depend on data"


@shape_rule("Pad", since=2)
def _shapes(node: Node) -> list[dims.Shape | None]:
    return [
        tuple(
            before + extent + after
            for extent, (before, after) in zip(node.shape(0), _pads(node), strict=True)
        )
    ]


def _pads(node: Node) -> list[tuple[dims.Expr, dims.Expr]]:
    """Elements to add before and after every axis."""
    rank = len(node.shape(0))
    attribute = node.attr_ints("pads")
    pads = (
        known(node, 1, "pads") if attribute is None else tuple(sympy.Integer(p) for p in attribute)
    )
    axes = _axes(node) or tuple(sympy.Integer(axis) for axis in range(rank))
    if len(pads) != 2 * len(axes):
        raise ValueError(f"{len(pads)} pads for {len(axes)} axes")
    result = [(dims.ZERO, dims.ZERO)] * rank
    for before, after, meant in zip(pads, pads[len(axes) :], axes, strict=False):
        for axis, others in enumerate(result):
            here = dims.Equals(from_front(meant, rank), sympy.Integer(axis))
            now = zip((before, after), others, strict=True)
            first, last = (dims.Where(here, new, old) for new, old in now)
            result[axis] = first, last
    return result


def _axes(node: Node) -> tuple[dims.Expr, ...] | None:
    """What the pads are for; None for all axes."""
    return known(node, 3, "axes") if node.has(3) else None


@operator("Pad", since=2, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The input where there is one, else a constant or an element of it."""
    x, pads = inputs[0], _pads(node)
    assert x is not None
    require_axes(b, _axes(node) or (), x.rank)
    shape = _shapes(node)[0]
    assert shape is not None
    for axis, extent in enumerate(shape):
        b.require(dims.ZERO, extent, f"{node.label}: pads leave {{high}} elements of axis {axis}")
    mode = node.attr_string("mode", "constant")
    before = [p for p, _ in pads]
    if mode == "constant":
        value = _value(node, inputs, x)

        def padded(index: Index) -> Expr:
            position = [i - p for i, p in zip(index, before, strict=True)]
            within = inside(position, x.shape, pads)
            element = x.load(tuple(position))
            return element if within is None else Select(x.dtype, within, element, value)

        return [b.lazy(x.dtype, shape, [x], padded)]
    cut = [dims.largest(-p, dims.ZERO) for p in before]
    left = [
        extent - start - dims.largest(-after, dims.ZERO)
        for extent, start, (_, after) in zip(x.shape, cut, pads, strict=True)
    ]
    rest = x if left == list(x.shape) else Slice(x, left, cut, [dims.ONE] * x.rank)
    added = [dims.largest(p, dims.ZERO) for p in before]
    for axis, extent in enumerate(left):
        if not dims.same(extent, shape[axis]):
            b.require(dims.ONE, extent, f"{node.label}: axis {axis} has no element to repeat")

    def repeated(index: Index) -> Expr:
        position = [
            i if p == 0 and dims.same(extent, wanted) else _source(mode, i - p, extent)
            for i, p, extent, wanted in zip(index, added, left, shape, strict=True)
        ]
        return rest.load(tuple(position))

    return [b.lazy(x.dtype, shape, [rest], repeated)]


def _source(mode: str, index: dims.Expr, extent: dims.Expr) -> dims.Expr:
    """The element of an axis that stands at an index before or after it."""
    if mode == "edge":
        return sympy.Min(sympy.Max(index, dims.ZERO), extent - 1)
    if mode == "wrap":
        return dims.FloorMod(index, extent)
    # There and back again, both ends once.
    period = dims.largest(2 * (extent - 1), dims.ONE)
    there = dims.FloorMod(index, period)
    return sympy.Min(there, period - there)


def _value(node: Node, inputs: Sequence[Tensor | None], x: Tensor) -> Expr:
    """What a constant pad consists of."""
    given = inputs[2] if len(inputs) > 2 else None
    if given is not None:
        return given.load((dims.ZERO,) * given.rank)
    return Literal(x.dtype, node.attr_float("value", 0.0))
