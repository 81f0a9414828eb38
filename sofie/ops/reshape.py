"""Reshape: https://onnx.ai/onnx/operators/onnx__Reshape.html

The target shape, with 0 and -1 resolved, is the output's inferred shape.
"""

from collections.abc import Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("Reshape", since=5, is_view=True)
def _shapes(node: Node) -> list[dims.Shape | None]:
    """0 and -1 of a target that depends on data are told apart at run time."""
    target, shape = node.known(1), node.shape(0)
    if target is None:
        return [None]
    wild = [dims.Equals(t, sympy.Integer(-1)) for t in target]
    given = list(target)
    if not node.attr_int("allowzero", 0):
        for axis, t in enumerate(target):
            copied = shape[axis] if axis < len(shape) else dims.ZERO
            given[axis] = dims.Where(_is_zero(t), copied, t)
    others = dims.product([dims.Where(w, dims.ONE, g) for w, g in zip(wild, given, strict=True)])
    share = sympy.fraction(sympy.cancel(dims.product(shape) / others)) if others != 0 else (0, 1)
    rest = dims.FloorDiv(*map(sympy.sympify, share))
    return [tuple(dims.Where(w, rest, g) for w, g in zip(wild, given, strict=True))]


def _is_zero(extent: dims.Expr) -> dims.Expr:
    """1 for the number 0 and for elements that are 0; a size that is 0 is none to copy."""
    if extent.is_Integer or dims.depends_on_elements(extent):
        return dims.Equals(extent, dims.ZERO)
    return dims.ZERO


@operator("Reshape", since=5, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view; sizes under which the elements do not fit are refused at run time."""
    x = inputs[0]
    assert x is not None
    shape = node.out_shape()
    have, want = dims.product(x.shape), dims.product(shape)
    if not dims.same(have, want):
        b.require(have, want, f"{node.label}: Reshape of {{low}} elements into {{high}}")
        b.require(want, have, f"{node.label}: Reshape of {{high}} elements into {{low}}")
    return [Reshape(x, shape)]
