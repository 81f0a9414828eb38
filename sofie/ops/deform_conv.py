"""DeformConv: https://onnx.ai/onnx/operators/onnx__DeformConv.html"""

from collections.abc import Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.convolution import Convolution
from sofie.ops.elementwise import rounded
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.sampling import Axis, sampled, size
from sofie.ops.spatial import check_window, kernel_shape, window


@shape_rule("DeformConv", since=19)
def _shapes(node: Node) -> list[dims.Shape | None]:
    taps = window(node, kernel_shape(node, 1))
    return [(node.shape(0)[0], node.shape(1)[0], *taps.counts)]


@operator("DeformConv", since=19, dtypes=dtype.FLOATS, check=check_window)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A convolution whose windows' positions are moved, each by an offset of its own."""
    x, w, offset = inputs[:3]
    bias = inputs[3] if len(inputs) > 3 else None
    mask = inputs[4] if len(inputs) > 4 else None
    assert x is not None and w is not None and offset is not None
    conv = Convolution(node, b, x, w, bias)
    spatial = len(conv.taps.kernel)
    parts = sympy.Integer(node.attr_int("offset_group", 1))
    share = dims.FloorDiv(x.shape[1], parts)
    b.require_equal(x.shape[1], share * parts, "channels and the offset groups' share of them")
    positions = parts * dims.product(conv.taps.kernel)
    b.require_equal(offset.shape[1], positions * spatial, "channels of offset and their number")
    for axis, (have, want) in enumerate(zip(offset.shape[2:], conv.taps.counts, strict=True), 2):
        b.require_equal(have, want, f"axis {axis} of offset and of the output")
    if mask is not None:
        b.require_equal(mask.shape[1], positions, "channels of mask and their number")
    strides = dims.packed_strides(conv.taps.kernel, range(spatial))
    number = dtype.wide(x.dtype)

    def sample(batch: dims.Expr, channel: dims.Expr, out: Index, tap: Index) -> Expr:
        part = dims.FloorDiv(channel, share) if parts != 1 else dims.ZERO
        which = sum((t * s for t, s in zip(tap, strides, strict=True)), dims.ZERO)
        which = part * dims.product(conv.taps.kernel) + which
        axes = []
        for axis, place in enumerate(conv.taps.position(out, tap)):
            moved = offset.load((batch, which * spatial + axis, *out))
            at = Call(number, "{0} + {1}", (size(place, number), rounded(moved, number)))
            axes.append(Axis(at, x.shape[2 + axis]))
        value = sampled(axes, x.dtype, number, lambda index: x.load((batch, channel, *index)))
        if mask is not None:
            factor = rounded(mask.load((batch, which, *out)), number)
            value = Call(number, "{0} * {1}", (value, factor))
        return rounded(value, x.dtype)

    sources = [x, offset, *([mask] if mask is not None else [])]
    return [conv.product(conv.patches(sample, sources), relu=False)]
