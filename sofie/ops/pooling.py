"""Poolings: what their files have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Select
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.spatial import require_windows, window


def check(node: Node) -> Iterator[str]:
    """What no pooling here supports."""
    if node.is_used(1):
        yield "the optional output Indices"
    if node.attr_ints("kernel_shape") is None:
        yield "a missing kernel_shape"
    elif node.attr_int("ceil_mode", 0) and _skips(node):
        yield "ceil_mode with a stride above the window's extent"


def _skips(node: Node) -> bool:
    """True where a window of ceil_mode could lie wholly beyond the input."""
    kernel = node.attr_ints("kernel_shape") or ()
    strides = node.attr_ints("strides") or (1,) * len(kernel)
    return any(s > k for s, k in zip(strides, kernel, strict=True))


def pool(
    node: Node,
    b: Builder,
    x: Tensor,
    combine: str,
    outside: Expr,
    finish: Callable[[Expr], Expr],
) -> Tensor:
    """Combines the elements under every window; ``outside`` stands for those beyond the input."""
    kernel = node.attr_ints("kernel_shape")
    assert kernel is not None
    taps = window(node, kernel)
    require_windows(b, node)
    reduced = [sympy.Integer(k) for k in kernel]

    def element(outer: Index, inner: Index) -> Expr:
        position = taps.position(outer[2:], inner)
        value = x.load((*outer[:2], *position))
        inside = taps.inside(position)
        return value if inside is None else Select(x.dtype, inside, value, outside)

    shape: dims.Shape = node.out_shape()
    rule = Combine(combine, x.dtype)
    return Reduction(b, shape, reduced, rule, element, finish, x.dtype, [x])
