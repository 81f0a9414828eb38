"""Windows that slide over spatial axes: what convolutions and poolings have in common.

Axes are [N, C, spatial...]. Formulas: https://onnx.ai/onnx/operators/onnx__Conv.html and
https://onnx.ai/onnx/operators/onnx__AveragePool.html
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, compare
from sofie.ir.node import Node
from sofie.ops.indexing import both

_AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclasses.dataclass(frozen=True)
class Window:
    """A window's geometry, one entry for each spatial axis.

    Attributes:
      kernel: extents of the window.
      strides: steps between windows.
      dilations: steps inside a window.
      before: elements missing before the first one of the input.
      after: elements missing after the last one.
      extents: spatial extents of the input.
      counts: how many windows there are.
      in_bounds: True for an axis along which every position of every window lies in the input.
    """

    kernel: tuple[dims.Expr, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[dims.Expr, ...]
    after: tuple[dims.Expr, ...]
    extents: tuple[dims.Expr, ...]
    counts: tuple[dims.Expr, ...]
    in_bounds: tuple[bool, ...]

    @property
    def is_pointwise(self) -> bool:
        """True where every window is one element and they cover the input in order."""
        one = all(k == 1 for k in self.kernel) and all(s == 1 for s in self.strides)
        return one and all(self.in_bounds)

    def position(self, out: Sequence[dims.Expr], tap: Sequence[dims.Expr]) -> list[dims.Expr]:
        """The input index under an output index and a position in the window."""
        parts = zip(out, tap, self.strides, self.dilations, self.before, strict=True)
        return [o * s + t * d - p for o, t, s, d, p in parts]

    def inside(self, position: Sequence[dims.Expr]) -> Expr | None:
        """Whether an input index exists; None where it always does."""
        conditions = []
        for i, extent, bounded in zip(position, self.extents, self.in_bounds, strict=True):
            if not bounded:
                conditions.append(compare(">=", i, dims.ZERO))
                conditions.append(compare("<", i, extent))
        return both(conditions)


def check_window(node: Node) -> Iterator[str]:
    """What is wrong with the attributes of a window."""
    if node.attr_string("auto_pad", "NOTSET") not in _AUTO_PADS:
        yield f"the auto_pad {node.attr_string('auto_pad', 'NOTSET')!r}"
    rank = len(node.shape(0)) - 2
    if rank < 1:
        yield f"an input of rank {rank + 2}"
    for name, length in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        values = node.attr_ints(name)
        if values is not None and len(values) != length * rank:
            yield f"{name} of {len(values)} numbers for {rank} spatial axes"
        elif values is not None and min(values, default=1) < (0 if name == "pads" else 1):
            yield f"{name} of {min(values)}"


def window(node: Node, kernel: Sequence[int | dims.Expr]) -> Window:
    """The window of a convolution or pooling with the given kernel extents."""
    rank = len(kernel)
    extents = node.shape(0)[2:]
    if len(extents) != rank:
        raise ValueError(f"a kernel of rank {rank} for {len(extents)} spatial axes")
    extended = tuple(sympy.sympify(k) for k in kernel)
    strides = node.attr_ints("strides") or (1,) * rank
    dilations = node.attr_ints("dilations") or (1,) * rank
    given = node.attr_ints("pads") or (0,) * (2 * rank)
    rounds_up = node.attr_int("ceil_mode", 0) != 0
    auto = node.attr_string("auto_pad", "NOTSET")
    before, after, counts, bounded = [], [], [], []
    for axis in range(rank):
        extent, stride = extents[axis], sympy.Integer(strides[axis])
        span = (extended[axis] - 1) * dilations[axis] + 1
        if auto.startswith("SAME"):
            count = _ceil_div(extent, stride)
            total = dims.largest((count - 1) * stride + span - extent, dims.ZERO)
            first = dims.FloorDiv(total + (1 if auto == "SAME_LOWER" else 0), sympy.Integer(2))
            pads = (first, total - first)
            fits = span == 1
        else:
            zero = auto == "VALID"
            pads = tuple(sympy.Integer(0 if zero else given[axis + end * rank]) for end in (0, 1))
            room = extent + pads[0] + pads[1] - span
            count = dims.FloorDiv(room, stride) + 1
            fits = pads == (0, 0)
            if rounds_up and not zero:
                # The last window starts inside of the input or before it.
                count = dims.smallest(
                    _ceil_div(room, stride) + 1, _ceil_div(extent + pads[0], stride)
                )
                fits = False
        before.append(pads[0])
        after.append(pads[1])
        counts.append(count)
        bounded.append(bool(fits))
    return Window(
        extended,
        strides,
        dilations,
        tuple(before),
        tuple(after),
        tuple(extents),
        tuple(counts),
        tuple(bounded),
    )


def require_windows(b: Builder, taps: Window) -> None:
    """Demands that no spatial axis has fewer than no windows."""
    for axis, count in enumerate(taps.counts, 2):
        message = f"{b.node}: the input is smaller than the window along axis {axis}"
        b.require(dims.ZERO, count, message)


def kernel_shape(node: Node, weights: int | None = None) -> tuple[dims.Expr, ...]:
    """The window's extents: the attribute, or those of the weights, input number ``weights``.

    Raises:
      ValueError: neither is given.
    """
    given = node.attr_ints("kernel_shape")
    if given is not None:
        return tuple(sympy.Integer(k) for k in given)
    if weights is None:
        raise ValueError("a missing kernel_shape")
    return node.shape(weights)[2:]


def channels_last(rank: int) -> tuple[int, ...]:
    """The axes of [N, C, spatial...] with the channels innermost."""
    return (0, *range(2, rank), 1)


def _ceil_div(a: dims.Expr, b: dims.Expr) -> dims.Expr:
    return dims.FloorDiv(a + b - 1, b)
