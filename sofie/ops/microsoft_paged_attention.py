"""PagedAttention of com.microsoft:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.PagedAttention
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import sympy

from sofie.ir import dims, dtype, expr
from sofie.ir.attention import Inputs, Packed, Seen, attention
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, INT64
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Slice, Strided, Tensor, View
from sofie.ops import attending
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"
_QUERY, _KEY, _VALUE, _KEY_CACHE, _VALUE_CACHE, _ENDS, _PAST, _TABLE, _COS, _SIN, _SLOTS = range(11)
# Behind the slots; the last input, bounds of lengths, is a hint.
_SINK, _QUERY_NORM, _KEY_NORM, _KEY_SCALE, _VALUE_SCALE = range(11, 16)


def _depth(node: Node) -> dims.Expr:
    return node.shape(_KEY_CACHE)[3]


@shape_rule("PagedAttention", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    if list(_check(node)):
        raise ValueError("not supported")
    heads, _ = attending.grouped_heads(node)
    cache = node.shape(_KEY_CACHE)
    return [(node.shape(_QUERY)[0], heads * _depth(node)), cache, cache]


def _check(node: Node) -> Iterator[str]:
    if not attending.are_groups(*attending.grouped_heads(node)):
        yield "heads of keys that do not divide those of queries"
        return
    if node.attr_string("kv_cache_layout", "SEPARATE") != "SEPARATE" or not node.has(_VALUE_CACHE):
        yield "one cache for keys and values"
        return
    if len(node.shape(_QUERY)) != 2 or node.has(_KEY) != node.has(_VALUE):
        yield "queries, keys and values that are not [rows, channels]"
        return
    caches = [node.shape(position) for position in (_KEY_CACHE, _VALUE_CACHE)]
    if any(len(shape) != 4 for shape in caches):
        yield "caches that are not [blocks, rows, heads, channels]"
        return
    if not attending.is_number(_depth(node)):
        yield "numbers of channels that are not known at build time"
    if any(node.dtype(i) is not node.dtype(_QUERY) for i in (_KEY_CACHE, _VALUE_CACHE)):
        yield "caches of another type than queries"
    if node.attr_int("do_rotary", 0) == 1 and not (node.has(_COS) and node.has(_SIN)):
        yield "rotary embeddings without their cosines and sines"
    if node.attr_int("rotary_offset", 0) != 0:
        yield "rotary embeddings of channels that are not the first ones"
    if node.has(_SINK):
        yield "a head_sink"
    if node.has(_QUERY_NORM) or node.has(_KEY_NORM):
        yield "norms of queries and keys"
    if node.has(_KEY_SCALE) or node.has(_VALUE_SCALE):
        yield "quantised caches"


@dataclasses.dataclass(frozen=True)
class _Pages:
    """Where rows of sequences are in caches of blocks.

    A cache is held as rows [slots, heads, channels], those of a block one after another. Two blocks
    are behind those that exist: one for rows that are not to be kept, and one of zeros, which rows
    are read from whose block the table does not name.

    Attributes:
      ends: [batch + 1] see ``Packed.rows``.
      past: [batch] how many rows a sequence has in the caches already.
      table: [batch, pages] the block of each page of a sequence; -1 for none.
      blocks: how many there are.
      rows: of a block.
    """

    ends: Tensor
    past: Tensor
    table: Tensor
    blocks: dims.Expr
    rows: dims.Expr

    @property
    def slots(self) -> dims.Expr:
        """Rows of all blocks."""
        return self.blocks * self.rows

    @property
    def most_keys(self) -> dims.Expr:
        """Rows of a sequence, for which the table has pages."""
        return self.table.shape[1] * self.rows

    def positions(self, b: Builder, tokens: dims.Expr) -> tuple[Tensor, Tensor]:
        """[tokens] the sequence of each token, and its position there, past rows included."""
        sequences = self.ends.shape[0] - 1

        def sequence(index: Index) -> Expr:
            """How many sequences but the last one end at the token or before it."""
            (token,) = index
            return expr.fold(
                "{0} + {1}",
                Literal(INT64, 0),
                expr.Index(INT64, sequences - 1),
                lambda i: compare("<=", Indirect(self.ends.load((i + 1,))), token),
            )

        of = b.packed(b.lazy(INT64, (tokens,), [self.ends], sequence))

        def position(index: Index) -> Expr:
            (token,) = index
            item = Indirect(of.load(index))
            there = expr.Index(
                INT64,
                Indirect(self.past.load((item,))) + token - Indirect(self.ends.load((item,))),
            )
            # Tokens behind the last sequence have no position.
            belongs = compare("<", token, Indirect(self.ends.load((sequences,))))
            return Select(INT64, belongs, there, Literal(INT64, -1))

        return of, b.packed(b.lazy(INT64, (tokens,), [self.ends, self.past, of], position))

    def slot(self, block: dims.Expr, row: dims.Expr, otherwise: dims.Expr) -> Expr:
        """The slot of a sequence's row in a block; ``otherwise`` where there is no such block."""
        place = expr.Index(INT64, block * self.rows + dims.FloorMod(row, self.rows))
        return Select(INT64, _is_below(block, self.blocks), place, expr.Index(INT64, otherwise))

    def block(self, sequence: dims.Expr, page: dims.Expr) -> Expr:
        """What the table says."""
        return expr.Index(INT64, Indirect(self.table.load((sequence, page))))

    def block_of_row(self, sequence: dims.Expr, row: dims.Expr) -> Expr:
        """The block of a sequence's row, which the table may have no page for; -1 for none."""
        block = self.block(sequence, dims.FloorDiv(row, self.rows))
        return Select(INT64, _is_below(row, self.most_keys), block, Literal(INT64, -1))

    def updated(self, b: Builder, cache: Tensor, new: Tensor, slots: Tensor) -> Strided:
        """[slots + 2 blocks, heads, channels] the cache with new rows where ``slots`` says."""
        heads, channels = cache.shape[2:]
        rows = Reshape(cache, (self.slots, heads, channels))

        def element(index: Index) -> Expr:
            exists = compare("<", index[0], self.slots)
            return Select(cache.dtype, exists, rows.load(index), Literal(cache.dtype, 0.0))

        shape = (self.slots + 2 * self.rows, heads, channels)
        held = b.lazy(cache.dtype, shape, [cache], element)

        def place(index: Index) -> Index:
            token, head, channel = index
            return (Indirect(slots.load((token,))), head, channel)

        return b.scatter(held, new, (0,), place, "Replace", [slots])

    def cache(self, held: Tensor) -> Tensor:
        """The blocks that exist."""
        heads, channels = held.shape[1:]
        kept = Slice(held, (self.slots, heads, channels), (dims.ZERO,) * 3, (dims.ONE,) * 3)
        return Reshape(kept, (self.blocks, self.rows, heads, channels))


class _Gathered(View):
    """[batch, heads, keys, channels] of rows in blocks, which are read where they are."""

    def __init__(self, held: Strided, pages: _Pages) -> None:
        _, heads, channels = held.shape
        super().__init__(held, (pages.past.shape[0], heads, pages.most_keys, channels))
        self._pages = pages

    def load(self, index: Index) -> Expr:
        """The row that the table leads to."""
        item, head, row, channel = index
        pages = self._pages
        block = Indirect(pages.block(item, dims.FloorDiv(row, pages.rows)))
        slot = Indirect(pages.slot(block, row, pages.slots + pages.rows))
        return self.base.load((slot, head, channel))

    def strided(self, order: Sequence[int] | None = None) -> None:
        """None: blocks lie in any order."""


def _is_below(index: dims.Expr, extent: dims.Expr) -> Expr:
    """Whether an index that data says exists."""
    bounds = compare("<=", dims.ZERO, index), compare("<", index, extent)
    return Call(BOOL, "{0} && {1}", bounds)


@operator("PagedAttention", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel, which reads keys and values from their blocks, behind the caches' update."""
    operands = [*inputs, *([None] * (_SLOTS + 1 - len(inputs)))]
    key_cache, value_cache = operands[_KEY_CACHE], operands[_VALUE_CACHE]
    given = [operands[position] for position in (_ENDS, _PAST, _TABLE)]
    assert key_cache is not None and value_cache is not None
    ends, past, table = (b.packed(x) for x in given if x is not None)
    pages = _Pages(ends, past, table, *key_cache.shape[:2])
    _require(node, b, pages, key_cache, value_cache)
    query, key, value = _split(node, b, operands)
    tokens = query.shape[0]
    sequences, positions = pages.positions(b, tokens)
    if node.attr_int("do_rotary", 0) == 1:
        query, key = (_rotated(node, b, operands, x, positions) for x in (query, key))
    slots = b.packed(b.lazy(INT64, (tokens,), [], _slots(b, pages, operands, sequences, positions)))
    held = [
        pages.updated(b, cache, new, slots)
        for cache, new in ((key_cache, key), (value_cache, value))
    ]

    def length(index: Index) -> Expr:
        (item,) = index
        first, end = (Indirect(ends.load((item + i,))) for i in range(2))
        return expr.Index(INT64, Indirect(past.load(index)) + end - first)

    def page_bias(index: Index) -> Expr:
        """Rows whose block the table does not name are not seen."""
        block = Indirect(pages.block(*index))
        exists = _is_below(block, pages.blocks)
        return Select(number, exists, Literal(number, 0.0), Literal(number, -math.inf))

    number = dtype.wide(query.dtype)
    biases = b.packed(b.lazy(number, table.shape, [table], page_bias))

    def bias(index: Index) -> Expr:
        item, _, _, row = index
        return biases.load((item, dims.FloorDiv(row, pages.rows)))

    window = node.attr_int("local_window_size", -1)
    batch = past.shape[0]
    shape = (batch, query.shape[1], tokens, pages.most_keys)
    result, _ = attention(
        b,
        Inputs(
            query,
            _Gathered(held[0], pages),
            _Gathered(held[1], pages),
            scale=node.attr_float("scale", 0.0) or 1 / math.sqrt(int(query.shape[2])),
            packed=Packed(ends, None),
            bias=b.lazy(number, shape, [biases], bias),
            seen=Seen(
                left=sympy.Integer(window - 1) if window > 0 else None,
                right=dims.ZERO if node.attr_int("is_causal", 1) == 1 else None,
                shift=None,
                lengths=b.lazy(INT64, (batch,), [ends, past], length),
            ),
            soft_cap=max(node.attr_float("softcap", 0.0), 0.0),
        ),
    )
    rows, heads, channels = result.shape
    return [Reshape(result, (rows, heads * channels)), *(pages.cache(x) for x in held)]


def _require(node: Node, b: Builder, pages: _Pages, keys: Tensor, values: Tensor) -> None:
    """What the operands' extents must be."""
    for axis in range(4):
        b.require_equal(
            keys.shape[axis], values.shape[axis], f"extents of axis {axis} of the caches"
        )
    b.require_equal(
        keys.shape[2],
        sympy.Integer(attending.grouped_heads(node)[1]),
        "heads of the caches and kv_num_heads",
    )
    b.require(dims.ONE, pages.rows, f"{node.label}: caches whose blocks have no rows")
    b.require(dims.ONE, pages.ends.shape[0], f"{node.label}: cumulative lengths without a first 0")
    batch = pages.ends.shape[0] - 1
    for x, what in ((pages.past, "past lengths"), (pages.table, "rows of the block table")):
        b.require_equal(x.shape[0], batch, f"numbers of {what} and of sequences")


def _split(node: Node, b: Builder, operands: Sequence[Tensor | None]) -> list[Tensor]:
    """Queries, keys and values as [rows, heads, channels]."""
    query = operands[_QUERY]
    assert query is not None
    heads, key_heads = attending.grouped_heads(node)
    depth, rows = _depth(node), query.shape[0]
    counts = [sympy.Integer(count) for count in (heads, key_heads, key_heads)]
    split: list[Tensor] = []
    start = dims.ZERO
    for x, count in zip(operands[_QUERY : _VALUE + 1], counts, strict=True):
        width = count * depth
        if operands[_KEY] is None:
            b.require_equal(
                query.shape[1], sum(counts, dims.ZERO) * depth, "channels of Q, K and V"
            )
            x = Slice(query, (rows, width), (dims.ZERO, start), (dims.ONE,) * 2)
        assert x is not None
        b.require_equal(x.shape[0], rows, "rows of queries, keys and values")
        b.require_equal(x.shape[1], width, "channels of Q, K and V, and of their heads")
        split.append(Reshape(x, (rows, count, depth)))
        start = start + width
    return split


def _rotated(
    node: Node, b: Builder, operands: Sequence[Tensor | None], x: Tensor, positions: Tensor
) -> Tensor:
    """Each token is a sequence of one row."""
    cos, sin = operands[_COS], operands[_SIN]
    assert cos is not None and sin is not None
    rows, heads, channels = x.shape
    alone = Reshape(x, (rows, heads, dims.ONE, channels))
    interleaved = node.attr_int("rotary_interleaved", 0) == 1
    turned = attending.rotated(b, alone, positions, cos, sin, interleaved=interleaved)
    return Reshape(turned, x.shape)


def _slots(
    b: Builder,
    pages: _Pages,
    operands: Sequence[Tensor | None],
    sequences: Tensor,
    positions: Tensor,
) -> Callable[[Index], Expr]:
    """[tokens] where a token's key and value go: as an input says, else where the table does."""
    mapping = operands[_SLOTS]
    if mapping is None:

        def derived(index: Index) -> Expr:
            position = Indirect(positions.load(index))
            block = Indirect(pages.block_of_row(Indirect(sequences.load(index)), position))
            return pages.slot(block, position, pages.slots)

        return derived
    slots = b.packed(mapping)
    b.require_equal(slots.shape[0], sequences.shape[0], "rows of queries and of slot_mapping")

    def element(index: Index) -> Expr:
        slot = Indirect(slots.load(index))
        places = (expr.Index(INT64, place) for place in (slot, pages.slots))
        return Select(INT64, _is_below(slot, pages.slots), *places)

    return element
