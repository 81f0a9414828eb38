"""Windows that slide over spatial axes: what convolutions and poolings have in common.

Axes are [N, C, spatial...]. Formulas: https://onnx.ai/onnx/operators/onnx__Conv.html and
https://onnx.ai/onnx/operators/onnx__AveragePool.html
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL
from sofie.ir.expr import Call, Expr, compare
from sofie.ir.node import Node


@dataclasses.dataclass(frozen=True)
class Window:
    """A window's geometry, one entry for each spatial axis.

    Attributes:
      kernel: extents of the window.
      strides: steps between windows.
      dilations: steps inside a window.
      pads: elements missing before the first one of the input.
      extents: spatial extents of the input.
      in_bounds: True for an axis along which every position of every window lies in the input.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[dims.Expr, ...]
    extents: tuple[dims.Expr, ...]
    in_bounds: tuple[bool, ...]

    @property
    def is_pointwise(self) -> bool:
        """True where every window is one element and they cover the input in order."""
        one = all(k == 1 for k in self.kernel) and all(s == 1 for s in self.strides)
        return one and all(self.in_bounds)

    def position(self, out: Sequence[dims.Expr], tap: Sequence[dims.Expr]) -> list[dims.Expr]:
        """The input index under an output index and a position in the window."""
        parts = zip(out, tap, self.strides, self.dilations, self.pads, strict=True)
        return [o * s + t * d - p for o, t, s, d, p in parts]

    def inside(self, position: Sequence[dims.Expr]) -> Expr | None:
        """Whether an input index exists; None where it always does."""
        conditions = []
        for i, extent, bounded in zip(position, self.extents, self.in_bounds, strict=True):
            if not bounded:
                conditions.append(compare(">=", i, dims.ZERO))
                conditions.append(compare("<", i, extent))
        if not conditions:
            return None
        return functools.reduce(lambda a, b: Call(BOOL, "{0} && {1}", (a, b)), conditions)


def window(node: Node, kernel: Sequence[int]) -> Window:
    """The window of a convolution or pooling with the given kernel extents."""
    rank = len(kernel)
    extents = node.shape(0)[2:]
    strides = node.attr_ints("strides") or (1,) * rank
    dilations = node.attr_ints("dilations") or (1,) * rank
    given = node.attr_ints("pads") or (0,) * (2 * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = node.attr_string("auto_pad", "NOTSET")
    before: list[dims.Expr] = []
    bounded: list[bool] = []
    for axis in range(rank):
        pad, padded_after = sympy.Integer(given[axis]), given[rank + axis] != 0
        if auto == "VALID":
            pad, padded_after = dims.ZERO, False
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            pad = _same_pad(extents[axis], strides[axis], spans[axis], auto == "SAME_LOWER")
            padded_after = spans[axis] > 1
        before.append(pad)
        bounded.append(pad == 0 and not padded_after and not node.attr_int("ceil_mode", 0))
    return Window(tuple(kernel), strides, dilations, tuple(before), tuple(extents), tuple(bounded))


def require_windows(b: Builder, node: Node) -> None:
    """Demands that at least one window fits along every spatial axis (an empty input aside)."""
    for axis, extent in enumerate(node.out_shape()[2:], 2):
        message = f"{node.label}: the input is smaller than the window along axis {axis}"
        b.require(dims.ZERO, extent, message)


def _same_pad(extent: dims.Expr, stride: int, span: int, lower: bool) -> dims.Expr:
    """Elements missing at the front so that ceil(extent / stride) windows fit."""
    windows = dims.FloorDiv(extent + (stride - 1), sympy.Integer(stride))
    total = sympy.Max((windows - 1) * stride + span - extent, dims.ZERO)
    return dims.FloorDiv(total + (1 if lower else 0), sympy.Integer(2))
