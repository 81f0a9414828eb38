"""MultiHeadAttention of com.microsoft:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MultiHeadAttention
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.attention import Inputs, Seen, attention
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Slice, Tensor
from sofie.ops import attending, elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_QUERY, _KEY, _VALUE, _BIAS, _PADDING, _SCORES_BIAS, _PAST_KEY, _PAST_VALUE = range(8)
_PRESENT_KEY, _PRESENT_VALUE, _SCORES = range(1, 4)
_DOMAIN = "com.microsoft"


def _heads(node: Node) -> dims.Expr:
    return sympy.Integer(node.attr_int("num_heads", 0))


def _split_shape(node: Node, position: int) -> dims.Shape:
    """Keys or values as [batch, heads, rows, channels], past ones included."""
    shape = node.shape(position)
    if len(shape) == 3:
        shape = (shape[0], _heads(node), shape[1], dims.FloorDiv(shape[2], _heads(node)))
    past = position + _PAST_KEY - _KEY
    before = node.shape(past)[2] if node.has(past) else dims.ZERO
    return (*shape[:2], sympy.expand(before + shape[2]), shape[3])


@shape_rule("MultiHeadAttention", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    if list(_check(node)):
        raise ValueError("not supported")
    key, value = _split_shape(node, _KEY), _split_shape(node, _VALUE)
    batch, rows, _ = node.shape(_QUERY)
    return [(batch, rows, value[1] * value[3]), key, value]


def _check(node: Node) -> Iterator[str]:
    if len(node.shape(_QUERY)) != 3 or not node.has(_KEY) or not node.has(_VALUE):
        yield "queries, keys and values in one tensor"
        return
    if _heads(node) <= 0:
        yield "no number of heads"
        return
    if any(len(node.shape(i)) not in (3, 4) for i in (_KEY, _VALUE)):
        yield "keys or values that are neither of rank 3 nor 4"
        return
    hidden = [node.shape(i)[2] for i in (_QUERY, _KEY, _VALUE) if len(node.shape(i)) == 3]
    if any(width.is_Integer and width % _heads(node) != 0 for width in hidden):
        yield "channels that do not divide into heads"
    depth = dims.FloorDiv(node.shape(_QUERY)[2], _heads(node))
    if not attending.is_number(depth, _split_shape(node, _VALUE)[3]):
        yield "numbers of channels that are not known at build time"
    if node.has(_PADDING) and len(node.shape(_PADDING)) != 2:
        yield "a padding mask that is not [batch, keys]"
    if node.has(_PAST_KEY) != node.has(_PAST_VALUE):
        yield "a past of keys or values alone"
    if node.arity > _PAST_VALUE + 1:
        yield "caches that are updated in place"
    if node.is_used(_SCORES):
        yield "scores as an output"


@operator("MultiHeadAttention", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel, which has no scores in memory."""
    operands = [*inputs, *([None] * (_PAST_VALUE + 1 - len(inputs)))]
    query, key, value = operands[_QUERY], operands[_KEY], operands[_VALUE]
    assert query is not None and key is not None and value is not None
    bias, start = operands[_BIAS], dims.ZERO
    split: list[Tensor] = []
    for x in (query, key, value):
        width = x.shape[2] if x.rank == 3 else _heads(node) * x.shape[3]
        if x.rank == 3:
            if bias is not None:
                x = elementwise.added(b, x, Slice(bias, (width,), (start,), (dims.ONE,)))
            x = attending.split_heads(x, _heads(node))
        start = start + width
        split.append(x)
    keys = attending.behind(b, operands[_PAST_KEY], split[1])
    values = attending.behind(b, operands[_PAST_VALUE], split[2])
    for x, position in ((keys, _PRESENT_KEY), (values, _PRESENT_VALUE)):
        if node.is_used(position):
            x.share(1)
    b.require_equal(split[0].shape[0], keys.shape[0], "batches of queries and keys")
    b.require_equal(split[0].shape[3], keys.shape[3], "channels of queries and keys")
    for axis in range(3):
        extents = keys.shape[axis], values.shape[axis]
        b.require_equal(*extents, f"extents of axis {axis} of keys and values")
    past = operands[_PAST_KEY]
    before = dims.ZERO if past is None else past.shape[2]
    result, _ = attention(
        b,
        Inputs(
            split[0],
            keys,
            values,
            scale=node.attr_float("scale", 0.0) or 1 / math.sqrt(int(split[0].shape[3])),
            bias=_bias(node, b, operands, (*split[0].shape[:3], keys.shape[2])),
            seen=Seen(right=dims.ZERO, shift=before)
            if node.attr_int("unidirectional", 0) == 1
            else Seen(),
        ),
    )
    return [attending.join_heads(result), keys, values]


def _bias(
    node: Node, b: Builder, operands: Sequence[Tensor | None], scores: dims.Shape
) -> Tensor | None:
    """What is added to scores: the bias of the node, and a low number where keys are padding."""
    number = dtype.wide(node.dtype(_QUERY))
    parts = []
    bias, padding = operands[_SCORES_BIAS], operands[_PADDING]
    if bias is not None:
        parts.append(attending.bias_of_mask(b, bias, scores, -math.inf, number))
    if padding is not None:
        batch, keys = padding.shape

        def one(index: Index) -> Expr:
            return padding.load((index[0], index[3]))

        mask = b.lazy(padding.dtype, (batch, dims.ONE, dims.ONE, keys), [padding], one)
        low = node.attr_float("mask_filter_value", -10000.0)
        parts.append(attending.bias_of_mask(b, mask, scores, low, number))
    if len(parts) < 2:
        return parts[0] if parts else None
    return elementwise.added(b, *parts)
