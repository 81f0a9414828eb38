"""Poolings: what their files have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx_ir

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import DType, wide
from sofie.ir.expr import Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.inference import shape_rule
from sofie.ops.spatial import Window, check_window, kernel_shape, require_windows, window


def check(node: Node) -> Iterator[str]:
    """What no pooling here supports."""
    yield from check_window(node)
    kernel, pads = node.attr_ints("kernel_shape"), node.attr_ints("pads")
    if kernel is None:
        yield "a missing kernel_shape"
        return
    spans = [
        (k - 1) * d + 1
        for k, d in zip(kernel, node.attr_ints("dilations") or (1,) * len(kernel), strict=True)
    ]
    if pads is not None and any(p >= s for p, s in zip(pads, spans * 2, strict=True)):
        yield "pads as large as the window"


def infer(name: str) -> None:
    """The shape rule of a pooling; a second output has the indices of the elements."""

    @shape_rule(name, types=(0, onnx_ir.DataType.INT64))
    def shapes(node: Node) -> list[dims.Shape | None]:
        taps = window(node, kernel_shape(node))
        return [(*node.shape(0)[:2], *taps.counts)] * 2


def pool(
    b: Builder,
    x: Tensor,
    taps: Window,
    combine: str,
    outside: float,
    prepare: Callable[[Expr], Expr] = lambda value: value,
) -> Reduction:
    """Combines the elements under every window.

    Args:
      b: the builder.
      x: the input.
      taps: the windows.
      combine: name of the ``Combine``.
      outside: stands for elements beyond the input, after ``prepare``.
      prepare: what is combined of an element.

    Returns:
      The result; of sums, in the type that is added in.
    """
    require_windows(b, taps)
    number = wide(x.dtype) if combine == "Sum" else x.dtype

    def element(outer: Index, inner: Index) -> Expr:
        position = taps.position(outer[2:], inner)
        value = prepare(rounded(x.load((*outer[:2], *position)), number))
        inside = taps.inside(position)
        return (
            value if inside is None else Select(x.dtype, inside, value, Literal(x.dtype, outside))
        )

    shape = (*x.shape[:2], *taps.counts)
    rule = Combine(combine, number)
    return Reduction(b, shape, taps.kernel, rule, element, lambda value: value, number, [x])


def lowest(dtype: DType) -> float | int:
    """What no element is below."""
    if dtype.is_float:
        return -float("inf")
    return 0 if dtype.name.startswith("u") else -(1 << (dtype.size * 8 - 1))
