"""Split: https://onnx.ai/onnx/operators/onnx__Split.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Slice, Tensor
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.has(1) and node.known(1) is None:
        yield "lengths that depend on data"


@shape_rule("Split")
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axis = node.shape(0), node.axis(0)
    return [(*shape[:axis], length, *shape[axis + 1 :]) for length in _lengths(node)]


def _lengths(node: Node) -> list[dims.Expr]:
    """The outputs' extents along the axis."""
    count = len(node.raw.outputs)
    if node.has(1):
        lengths = list(known(node, 1, "lengths"))
    elif (given := node.attr_ints("split")) is not None:
        lengths = [sympy.Integer(length) for length in given]
    else:
        extent = node.shape(0)[node.axis(0)]
        if node.attr_int("num_outputs", 0) == 0:
            return [dims.FloorDiv(extent, sympy.Integer(count))] * count
        # The last chunks are smaller, or empty, where the extent is no multiple.
        chunk = dims.FloorDiv(extent + count - 1, sympy.Integer(count))
        return [dims.clamp(extent - i * chunk, dims.ZERO, chunk) for i in range(count)]
    if len(lengths) != count:
        raise ValueError(f"{len(lengths)} lengths for {count} outputs")
    return lengths


@operator("Split", since=2, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Views, one after the other."""
    x, axis = inputs[0], node.axis(0)
    assert x is not None
    lengths = _lengths(node)
    for length in lengths:
        b.require(dims.ZERO, length, f"{node.label}: Split into a part of {{high}} elements")
    b.require_equal(sum(lengths, dims.ZERO), x.shape[axis], "the parts' sum and the axis")
    x.share(sum(node.is_used(i) for i in range(len(lengths))) - 1)
    steps = [dims.ONE] * x.rank
    parts: list[Tensor] = []
    start = dims.ZERO
    for length in lengths:
        shape, starts = list(x.shape), [dims.ZERO] * x.rank
        shape[axis], starts[axis] = length, start
        parts.append(Slice(x, shape, starts, steps))
        start = start + length
    return parts
