"""Attention: https://onnx.ai/onnx/operators/onnx__Attention.html

A node whose scores are an output, or whose heads have no fixed number of channels, is lowered by
ONNX's definition of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.attention import Inputs, Seen, attention
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import attending
from sofie.ops.registry import operator

_Q, _K, _V, _MASK, _PAST_KEY, _PAST_VALUE, _LENGTHS = range(7)
_PRESENT_KEY, _PRESENT_VALUE, _SCORES = range(1, 4)


@dataclasses.dataclass(frozen=True)
class _Shapes:
    """Shapes of queries, keys and values, past ones included: [batch, heads, rows, channels]."""

    query: dims.Shape
    key: dims.Shape
    value: dims.Shape

    @property
    def scores(self) -> dims.Shape:
        return (*self.query[:3], self.key[2])


def _heads(node: Node, position: int) -> dims.Expr:
    """The number of heads of an operand of rank 3."""
    return sympy.Integer(node.attr_int("q_num_heads" if position == _Q else "kv_num_heads", 0))


def _shapes(node: Node) -> _Shapes:
    def split(position: int) -> dims.Shape:
        shape = node.shape(position)
        if len(shape) == 4:
            return shape
        batch, rows, hidden = shape
        heads = _heads(node, position)
        if heads <= 0:
            raise ValueError("the number of heads is missing")
        return (batch, heads, rows, dims.FloorDiv(hidden, heads))

    query, key, value = split(_Q), split(_K), split(_V)
    if node.has(_PAST_KEY):
        before = node.shape(_PAST_KEY)[2]
        key, value = (
            (*shape[:2], sympy.expand(before + shape[2]), shape[3]) for shape in (key, value)
        )
    return _Shapes(query, key, value)


def _takes(node: Node) -> bool:
    try:
        shapes = _shapes(node)
        kinds = {node.dtype(i) for i in (_Q, _K, _V, _PAST_KEY, _PAST_VALUE) if node.has(i)}
        mask = node.shape(_MASK) if node.has(_MASK) else ()
        number = dtype.wide(node.dtype(_Q))
    except ValueError:
        return False
    precision = node.attr_int("softmax_precision", 0)
    return (
        len(kinds) == 1
        and node.has(_PAST_KEY) == node.has(_PAST_VALUE)
        and not node.is_used(_SCORES)
        and (precision != onnx_ir.DataType.DOUBLE or number is dtype.FLOAT64)
        and attending.is_number(shapes.query[3], shapes.value[3])
        and attending.broadcasts_to(mask, shapes.scores)
        and (not mask or dims.same(mask[-1], shapes.scores[-1]))
    )


def _check(node: Node) -> Iterator[str]:
    for position in (_Q, _K, _V):
        shape = node.shape(position)
        if len(shape) == 3 and shape[2].is_Integer and shape[2] % _heads(node, position) != 0:
            yield "channels that do not divide into heads"


@operator("Attention", since=23, dtypes=dtype.FLOATS, takes=_takes, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel, which has no scores in memory."""
    operands = [*inputs, *([None] * (_LENGTHS + 1 - len(inputs)))]
    is_split = len(node.shape(_Q)) == 4

    def split(position: int) -> Tensor:
        x = operands[position]
        assert x is not None
        return x if is_split else attending.split_heads(x, _heads(node, position))

    query = split(_Q)
    key = attending.behind(b, operands[_PAST_KEY], split(_K))
    value = attending.behind(b, operands[_PAST_VALUE], split(_V))
    for x, position in ((key, _PRESENT_KEY), (value, _PRESENT_VALUE)):
        if node.is_used(position):
            x.share(1)
    b.require_equal(query.shape[0], key.shape[0], "batches of queries and keys")
    b.require_equal(query.shape[3], key.shape[3], "channels of queries and keys")
    for axis in range(3):
        b.require_equal(key.shape[axis], value.shape[axis], f"extents of axis {axis} of K and V")
    mask, number = operands[_MASK], dtype.wide(query.dtype)
    scores = (*query.shape[:3], key.shape[2])
    result, _ = attention(
        b,
        Inputs(
            query,
            key,
            value,
            scale=node.attr_float("scale", 1 / math.sqrt(int(query.shape[3]))),
            bias=None
            if mask is None
            else attending.bias_of_mask(b, mask, scores, -math.inf, number),
            seen=_seen(node, operands),
            soft_cap=max(node.attr_float("softcap", 0.0), 0.0),
        ),
    )
    return [result if is_split else attending.join_heads(result), key, value]


def _seen(node: Node, operands: Sequence[Tensor | None]) -> Seen:
    """Which keys a query sees."""
    left, right = (node.attr_int(f"{side}_window_size", -1) for side in ("left", "right"))
    if node.attr_int("is_causal", 0) == 1:
        right = 0
    past, lengths = operands[_PAST_KEY], operands[_LENGTHS]
    return Seen(
        left=sympy.Integer(left) if left >= 0 else None,
        right=sympy.Integer(right) if right >= 0 else None,
        shift=past.shape[2] if past is not None else dims.ZERO if lengths is None else None,
        lengths=lengths,
    )
