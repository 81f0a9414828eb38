"""ConvTranspose: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Permute, Reshape, Strided, Tensor
from sofie.ops.folding import Fold, fold
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import channels_last, check_window, kernel_shape

# Groups of fewer input channels are summed as they are, without products first.
_FEW_CHANNELS = 2


def _check(node: Node) -> Iterator[str]:
    yield from check_window(node)
    spatial = len(node.shape(0)) - 2
    given = node.attr_ints("output_shape")
    if given is not None and len(given) != spatial:
        yield f"an output_shape of {len(given)} extents for {spatial} spatial axes"


@shape_rule("ConvTranspose")
def _shapes(node: Node) -> list[dims.Shape | None]:
    groups = node.attr_int("group", 1)
    return [(node.shape(0)[0], node.shape(1)[1] * groups, *_geometry(node).extents)]


def _geometry(node: Node) -> Fold:
    """Every element of the input is a window of the output."""
    kernel, counts = kernel_shape(node, 1), node.shape(0)[2:]
    rank = len(counts)
    if len(kernel) != rank:
        raise ValueError(f"a kernel of rank {len(kernel)} for {rank} spatial axes")
    strides = node.attr_ints("strides") or (1,) * rank
    dilations = node.attr_ints("dilations") or (1,) * rank
    extra = node.attr_ints("output_padding") or (0,) * rank
    given = node.attr_ints("output_shape")
    pads = node.attr_ints("pads") or (0,) * (2 * rank)
    auto = node.attr_string("auto_pad", "NOTSET")
    before, extents = [], []
    for axis in range(rank):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        full = (counts[axis] - 1) * strides[axis] + span + extra[axis]
        same = auto.startswith("SAME")
        if given is not None or same:
            wanted = counts[axis] * strides[axis] if given is None else sympy.Integer(given[axis])
            total = dims.largest(full - wanted, dims.ZERO)
            # An odd element is cut from the end if SAME_UPPER, else from the start.
            odd = 0 if auto == "SAME_UPPER" else 1
            first = dims.FloorDiv(total + odd, sympy.Integer(2))
        elif auto == "VALID":
            wanted, first = full, dims.ZERO
        else:
            wanted = full - pads[axis] - pads[rank + axis]
            first = sympy.Integer(pads[axis])
        before.append(first)
        extents.append(sympy.expand(wanted))
    return Fold(tuple(kernel), strides, dilations, tuple(before), tuple(counts), tuple(extents))


@operator("ConvTranspose", since=1, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The channels of every point times the weights, and the sum of the windows that they are."""
    x, w = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    assert x is not None and w is not None
    groups = sympy.Integer(node.attr_int("group", 1))
    inner, outer = dims.FloorDiv(w.shape[0], groups), w.shape[1]
    b.require_equal(x.shape[1], w.shape[0], "channels of the input and the weights")
    b.require_equal(w.shape[0], inner * groups, "input channels and the groups' share of them")
    geometry = _geometry(node)
    for axis, (have, want) in enumerate(zip(w.shape[2:], geometry.kernel, strict=True), 2):
        b.require_equal(have, want, f"axis {axis} of the weights and kernel_shape")
    for axis, extent in enumerate(geometry.extents, 2):
        b.require(dims.ZERO, extent, f"{b.node}: an output of {{high}} elements along axis {axis}")
    lead = (x.shape[0], groups, outer)
    if inner.is_Integer and int(inner) < _FEW_CHANNELS:

        def direct(at: Index, window: Index, tap: Index) -> Expr:
            channel = at[1] * inner + tap[-1]
            value = x.load((at[0], channel, *window))
            weight = w.load((channel, at[2], *tap[:-1]))
            return Call(x.dtype, "{0} * {1}", (value, weight))

        image = fold(b, x.dtype, lead, geometry, direct, [x, w], extra=(inner,))
    else:
        columns = _columns(node, b, x, w, groups)

        def part(at: Index, window: Index, tap: Index) -> Expr:
            return columns.load((at[0], *window, at[1], *tap, at[2]))

        image = fold(b, x.dtype, lead, geometry, part, [columns])

    def element(index: Index) -> Expr:
        value = image.load(index)
        if bias is None:
            return value
        shift = bias.load((index[1] * outer + index[2],))
        return Call(x.dtype, "{0} + {1}", (value, shift))

    if bias is not None:
        b.require_equal(bias.shape[0], outer * groups, "lengths of bias and output channels")
    finished = b.lazy(x.dtype, image.shape, [image, *([bias] if bias is not None else [])], element)
    return [Reshape(finished, (x.shape[0], outer * groups, *geometry.extents))]


def _columns(node: Node, b: Builder, x: Tensor, w: Tensor, groups: dims.Expr) -> Strided:
    """[N, spatial..., groups, kernel..., M / groups]: what every point adds to its window."""
    inner, outer = dims.FloorDiv(w.shape[0], groups), w.shape[1]
    order = channels_last(x.rank)
    points = dims.product((x.shape[0], *x.shape[2:]))
    kernel = w.shape[2:]
    width = dims.product(kernel) * outer
    rows = Reshape(Permute(b.packed(x, order), order), (points, groups, inner))
    array = node.array(1)
    if array is None:
        weights: Tensor = b.packed(Permute(w, channels_last(w.rank)))
    else:
        moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
        weights = b.constant(f"{node.input(1).name}.channels_last", w.dtype, moved)
    out = b.output(x.dtype, (x.shape[0], *x.shape[2:], groups, *kernel, outer))
    target = Permute(Reshape(out, (points, groups, width)), (1, 0, 2)).strided()
    assert target is not None
    b.matmul(
        b.in_memory(Permute(rows, (1, 0, 2))),
        b.in_memory(Reshape(weights, (groups, inner, width))),
        target,
        sources=[x],
    )
    return out
