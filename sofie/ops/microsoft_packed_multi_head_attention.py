"""PackedMultiHeadAttention of com.microsoft:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.PackedMultiHeadAttention
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.attention import Inputs, Packed, attention
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Slice, Tensor
from sofie.ops import attending, elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

# The offsets of tokens say where results would be in a padded batch: there is none.
_QUERY, _KEY, _VALUE, _BIAS, _OFFSETS, _ENDS, _SCORES_BIAS = range(7)
_DOMAIN = "com.microsoft"


def _heads(node: Node) -> dims.Expr:
    return sympy.Integer(node.attr_int("num_heads", 0))


def _depths(node: Node) -> tuple[dims.Expr, dims.Expr]:
    """The channels of a head of queries and of values."""
    if not node.has(_KEY):
        depth = node.shape(_QUERY)[3]
        return depth, depth
    query, value = (dims.FloorDiv(node.shape(i)[1], _heads(node)) for i in (_QUERY, _VALUE))
    return query, value


@shape_rule("PackedMultiHeadAttention", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    if list(_check(node)):
        raise ValueError("not supported")
    return [(node.shape(_QUERY)[0], _heads(node) * _depths(node)[1])]


def _check(node: Node) -> Iterator[str]:
    if _heads(node) <= 0:
        yield "no number of heads"
        return
    rank = 2 if node.has(_KEY) else 4
    if node.has(_KEY) != node.has(_VALUE) or len(node.shape(_QUERY)) != rank:
        yield "operands that are neither [rows, channels] nor [rows, heads, 3, channels]"
        return
    if rank == 2:
        hidden = [node.shape(i)[1] for i in (_QUERY, _KEY, _VALUE)]
        if any(width.is_Integer and width % _heads(node) != 0 for width in hidden):
            yield "channels that do not divide into heads"
    if not attending.is_number(*_depths(node)):
        yield "numbers of channels that are not known at build time"
    if node.has(_SCORES_BIAS):
        yield "a bias of scores"


@operator("PackedMultiHeadAttention", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel; lengths stay where they are."""
    operands = [*inputs, *([None] * (_SCORES_BIAS + 1 - len(inputs)))]
    ends = operands[_ENDS]
    assert ends is not None
    query, key, value = _split(node, b, operands)
    b.require_equal(query.shape[2], key.shape[2], "channels of queries and keys")
    for x in (key, value):
        b.require_equal(query.shape[0], x.shape[0], "rows of queries, keys and values")
    b.require(dims.ONE, ends.shape[0], f"{node.label}: cumulative lengths without a first 0")
    scale = node.attr_float("scale", 0.0) or 1 / math.sqrt(int(query.shape[2]))
    packed = Packed(ends, ends)
    result, _ = attention(b, Inputs(query, key, value, scale=scale, packed=packed))
    rows, heads, channels = result.shape
    return [Reshape(result, (rows, heads * channels))]


def _split(node: Node, b: Builder, operands: Sequence[Tensor | None]) -> list[Tensor]:
    """Queries, keys and values as [rows, heads, channels], with their biases."""
    query, key, value, bias = operands[: _BIAS + 1]
    assert query is not None
    heads = _heads(node)
    split: list[Tensor] = []
    start = dims.ZERO
    for i, x in enumerate((query, key, value)):
        if x is None or key is None:
            depth, begin = query.shape[3], (dims.ZERO, dims.ZERO, sympy.Integer(i), dims.ZERO)
            x = Slice(query, (query.shape[0], heads, dims.ONE, depth), begin, (dims.ONE,) * 4)
        else:
            depth = dims.FloorDiv(x.shape[1], heads)
        x = Reshape(x, (x.shape[0], heads, depth))
        if bias is not None:
            part = Slice(bias, (heads * depth,), (start,), (dims.ONE,))
            x = elementwise.added(b, x, Reshape(part, (heads, depth)))
        start = start + heads * depth
        split.append(x)
    return split
