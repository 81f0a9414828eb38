"""GroupQueryAttention of com.microsoft:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GroupQueryAttention
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype, expr
from sofie.ir.attention import Inputs, Seen, attention
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Slice, Tensor
from sofie.ops import attending
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator

_QUERY, _KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LAST, _TOTAL, _COS, _SIN, _POSITIONS, _BIAS = range(
    11
)
_DOMAIN = "com.microsoft"


def _depth(node: Node) -> dims.Expr:
    heads, key_heads = attending.grouped_heads(node)
    count = heads if node.has(_KEY) else heads + 2 * key_heads
    return dims.FloorDiv(node.shape(_QUERY)[2], sympy.Integer(count))


def _total(node: Node) -> dims.Expr:
    """The longest sequence, its past included."""
    return known(node, _TOTAL, "total_sequence_length")[0]


def _present(node: Node) -> dims.Expr:
    """The rows of the caches that are outputs."""
    total = _total(node)
    return dims.largest(node.shape(_PAST_KEY)[2], total) if node.has(_PAST_KEY) else total


@shape_rule("GroupQueryAttention", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    if list(_check(node)):
        raise ValueError("not supported")
    heads, key_heads = (sympy.Integer(count) for count in attending.grouped_heads(node))
    batch, rows, _ = node.shape(_QUERY)
    cache = (batch, key_heads, _present(node), _depth(node))
    return [(batch, rows, heads * _depth(node)), cache, cache]


def _check(node: Node) -> Iterator[str]:
    if not attending.are_groups(*attending.grouped_heads(node)):
        yield "heads of keys that do not divide those of queries"
        return
    if len(node.shape(_QUERY)) != 3 or node.has(_KEY) != node.has(_VALUE):
        yield "queries, keys and values that are not [batch, rows, channels]"
        return
    if not attending.is_number(_depth(node)):
        yield "numbers of channels that are not known at build time"
    if node.has(_PAST_KEY) != node.has(_PAST_VALUE):
        yield "a past of keys or values alone"
    if node.known(_TOTAL) is None:
        yield "a total_sequence_length that depends on data"
    if node.attr_int("do_rotary", 0) == 1 and not (node.has(_COS) and node.has(_SIN)):
        yield "rotary embeddings without their cosines and sines"
    if node.has(_POSITIONS):
        yield "positions as an input"
    if node.attr_int("smooth_softmax", 0) == 1 or node.has(_BIAS + 1):
        yield "a smooth softmax"
    if node.arity > _BIAS + 2 or node.attr_string("k_quant_type", "NONE") != "NONE":
        yield "quantised caches"
    if node.is_used(3):
        yield "scores as an output"


@operator("GroupQueryAttention", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel, which has no scores in memory, behind the caches' update."""
    operands = [*inputs, *([None] * (_BIAS + 1 - len(inputs)))]
    query, key, value = _split(node, operands)
    last, cos, sin = operands[_LAST], operands[_COS], operands[_SIN]
    assert last is not None
    rows, present = query.shape[2], _present(node)
    b.require_equal(last.shape[0], query.shape[0], "numbers of sequences and of their lengths")
    for axis in (0, 2):
        b.require_equal(query.shape[axis], key.shape[axis], f"extents of axis {axis} of Q and K")
    b.require(rows, present, f"{node.label}: {{low}} rows, but a total_sequence_length of {{high}}")
    starts = _starts(node, b, last, rows)
    if node.attr_int("do_rotary", 0) == 1:
        assert cos is not None and sin is not None
        interleaved = node.attr_int("rotary_interleaved", 0) == 1
        query, key = (
            attending.rotated(b, x, starts, cos, sin, interleaved=interleaved) for x in (query, key)
        )
    keys = _cache(b, operands[_PAST_KEY], key, starts, present)
    values = _cache(b, operands[_PAST_VALUE], value, starts, present)
    for x, position in ((keys, 1), (values, 2)):
        if node.is_used(position):
            x.share(1)

    def length(index: Index) -> Expr:
        return expr.Index(dtype.INT64, Indirect(last.load(index)) + 1)

    window, bias = node.attr_int("local_window_size", -1), operands[_BIAS]
    number = dtype.wide(query.dtype)
    result, _ = attention(
        b,
        Inputs(
            query,
            keys,
            values,
            scale=node.attr_float("scale", 0.0) or 1 / math.sqrt(int(query.shape[3])),
            bias=None
            if bias is None
            else attending.bias_of_mask(b, bias, (*query.shape[:3], present), -math.inf, number),
            seen=Seen(
                left=sympy.Integer(window - 1) if window > 0 else None,
                right=dims.ZERO,
                starts=starts,
                lengths=b.lazy(dtype.INT64, last.shape, [last], length),
            ),
            soft_cap=max(node.attr_float("softcap", 0.0), 0.0),
        ),
    )
    return [attending.join_heads(result), keys, values]


def _split(node: Node, operands: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as [batch, heads, rows, channels]."""
    query, key, value = operands[_QUERY], operands[_KEY], operands[_VALUE]
    assert query is not None
    heads, key_heads = (sympy.Integer(count) for count in attending.grouped_heads(node))
    if key is not None and value is not None:
        return (
            attending.split_heads(query, heads),
            attending.split_heads(key, key_heads),
            attending.split_heads(value, key_heads),
        )
    every = attending.split_heads(query, heads + 2 * key_heads)

    def part(first: dims.Expr, count: dims.Expr) -> Tensor:
        batch, _, rows, channels = every.shape
        starts = (dims.ZERO, first, dims.ZERO, dims.ZERO)
        return Slice(every, (batch, count, rows, channels), starts, (dims.ONE,) * 4)

    return (
        part(dims.ZERO, heads),
        part(heads, key_heads),
        part(heads + key_heads, key_heads),
    )


def _starts(node: Node, b: Builder, last: Tensor, rows: dims.Expr) -> Tensor:
    """[batch] where the new rows of a sequence begin: behind its past, of which a prompt has none.

    ``last`` has the index of each sequence's last row. All rows of a prompt are new; those of
    shorter sequences have rows of padding behind them.
    """
    is_prompt = compare("==", rows, _total(node))

    def element(index: Index) -> Expr:
        before = expr.Index(dtype.INT64, Indirect(last.load(index)) + 1 - rows)
        return Select(dtype.INT64, is_prompt, Literal(dtype.INT64, 0), before)

    return b.lazy(dtype.INT64, last.shape, [last], element)


def _cache(
    b: Builder, past: Tensor | None, new: Tensor, starts: Tensor, present: dims.Expr
) -> Tensor:
    """[batch, heads, present, channels]: old rows up to where new ones start, then those."""
    batch, heads, rows, channels = new.shape
    if past is not None:
        for axis in (0, 1, 3):
            b.require_equal(past.shape[axis], new.shape[axis], f"extents of axis {axis} of caches")

    def element(index: Index) -> Expr:
        item, head, row, channel = index
        start = Indirect(starts.load((item,)))
        place = dims.clamp(row - start, dims.ZERO, rows - 1)
        fresh = new.load((item, head, place, channel))
        is_fresh = compare("<", row - start, rows)
        value: Expr = Select(new.dtype, is_fresh, fresh, Literal(new.dtype, 0.0))
        if past is None:
            return value
        kept = dims.smallest(start, past.shape[2])
        return Select(new.dtype, compare("<", row, kept), past.load(index), value)

    operands = [new, starts, *([] if past is None else [past])]
    return b.lazy(new.dtype, (batch, heads, present, channels), operands, element)
