"""PackedAttention: docs/packed_attention.md"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.attention import Inputs, Packed, Seen, Sums, attention
from sofie.ir.builder import Builder
from sofie.ir.expr import Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import attending
from sofie.ops.elementwise import given
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator
from sofie.ops.sofie_attention import DOMAIN, VERSION

_ROWS, _KEYS, _PADDED = 3, 4, 5
_AXES = "bhs"
_PACKED, _HEAD_MAJOR = "sh", "hs"


def _layout(node: Node) -> str:
    """The axes of the sums, in order: sequences, heads, and rows (of a sequence, or of all)."""
    layout = node.attr_string("lse_layout", _PACKED)
    if layout not in (_PACKED, _HEAD_MAJOR) and sorted(layout) != sorted(_AXES):
        raise ValueError(f"the attribute lse_layout {layout!r}")
    if ("b" in layout) != node.has(_PADDED):
        raise ValueError("the input lse_rows goes with an lse_layout that has sequences")
    return layout


def _extents(node: Node, layout: str) -> dict[str, dims.Expr]:
    """The extent of every axis of the sums."""
    rows, heads = node.shape(0)[:2]
    if "b" in layout:
        rows = known(node, _PADDED, "lse_rows")[0]
    return {"b": node.shape(_ROWS)[0] - 1, "h": heads, "s": rows}


@shape_rule("PackedAttention", domain=DOMAIN, types=(0, onnx_ir.DataType.FLOAT))
def _shapes(node: Node) -> list[dims.Shape]:
    query, value = node.shape(0), node.shape(2)
    result = (*query[:2], value[2])
    if len(node.raw.outputs) < 2:
        return [result]
    layout = _layout(node)
    extents = _extents(node, layout)
    return [result, tuple(extents[axis] for axis in layout)]


def _check(node: Node) -> Iterator[str]:
    if any(len(node.shape(i)) != 3 for i in range(3)):
        yield "operands that are not [rows, heads, channels]"
        return
    if not attending.is_number(node.shape(0)[2], node.shape(2)[2]):
        yield "numbers of channels that are not known at build time"
    if any(node.dtype(i) is not node.dtype(0) for i in (1, 2)):
        yield "operands of several types"
    for position in (_ROWS, _KEYS):
        if node.has(position):
            if node.dtype(position) not in (dtype.INT32, dtype.INT64):
                yield "cumulative lengths that are neither int32 nor int64"
            if len(node.shape(position)) != 1:
                yield "cumulative lengths that are no vector"
    if node.attr_string("alignment", "bottom_right") not in ("bottom_right", "top_left"):
        yield "an alignment that is neither bottom_right nor top_left"
    _layout(node)


@operator("PackedAttention", since=VERSION, domain=DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """One kernel; lengths stay where they are."""
    query, key, value, rows = given(inputs[:4])
    keys = inputs[_KEYS] if node.has(_KEYS) else rows
    assert keys is not None
    b.require_equal(query.shape[2], key.shape[2], "channels of queries and keys")
    b.require_equal(rows.shape[0], keys.shape[0], "extents of the cumulative lengths")
    b.require(dims.ONE, rows.shape[0], f"{node.label}: cumulative lengths without a first 0")
    for axis in range(2):
        b.require_equal(key.shape[axis], value.shape[axis], f"extents of axis {axis} of K and V")
    operands = Inputs(
        query,
        key,
        value,
        scale=node.attr_float("scale", 1 / math.sqrt(int(query.shape[2]))),
        packed=Packed(rows, keys),
        seen=_seen(node),
        soft_cap=max(node.attr_float("softcap", 0.0), 0.0),
    )
    wants_sums = node.is_used(1)
    return list(attention(b, operands, (lambda: _sums(node, b)) if wants_sums else None))


def _seen(node: Node) -> Seen:
    """Which keys a query sees."""
    left, right = (node.attr_int(f"{side}_window_size", -1) for side in ("left", "right"))
    if node.attr_int("is_causal", 0) == 1:
        right = 0
    top_left = node.attr_string("alignment", "bottom_right") == "top_left"
    return Seen(
        left=sympy.Integer(left) if left >= 0 else None,
        right=sympy.Integer(right) if right >= 0 else None,
        shift=dims.ZERO if top_left else None,
    )


def _sums(node: Node, b: Builder) -> Sums:
    """The memory of the sums. What no row writes is -inf: rows past a length, or of no sequence."""
    layout = _layout(node)
    extents = _extents(node, layout)
    if "b" in layout:
        b.require(dims.ONE, extents["s"], f"{node.label}: lse_rows is {{high}}")
    shape = tuple(extents[axis] for axis in layout)
    lowest = b.lazy(dtype.FLOAT32, shape, [], lambda _: Literal(dtype.FLOAT32, -math.inf))
    memory = b.copy(lowest, range(len(shape)))
    strides = dict(zip(layout, memory.strides, strict=True))
    batch, head, row = (strides.get(axis, dims.ZERO) for axis in _AXES)
    return Sums(memory, (batch, head, row), extents["s"], by_sequence="b" in layout)
