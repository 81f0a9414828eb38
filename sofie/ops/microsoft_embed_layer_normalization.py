"""EmbedLayerNormalization of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.EmbedLayerNormalization"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops import normalization
from sofie.ops.indexing import indirect
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.attr_int("mask_index_type", 1) > 1:
        yield f"mask_index_type = {node.attr_int('mask_index_type', 1)}"
    if node.has(1) != node.has(4):
        yield "segment_ids without segment_embedding, or the other way round"


@operator(
    "EmbedLayerNormalization",
    since=1,
    domain="com.microsoft",
    dtypes={dtype.INT32},
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Rows of two or three tables are added and normalised in one kernel."""
    ids, segments, words, places, segment_table, gamma, beta, mask, place_ids = (
        *inputs,
        *[None] * 4,
    )[:9]
    assert ids is not None and words is not None and places is not None and gamma is not None
    number, shape = words.dtype, (*ids.shape, words.shape[1])
    read = [t for t in (ids, segments, words, places, segment_table, place_ids) if t is not None]

    def row(table: Tensor, index: dims.Expr, column: dims.Expr) -> Expr:
        return table.load((index, column))

    def element(index: Index) -> Expr:
        item, place, column = index
        word = row(words, indirect(ids.load((item, place)), words.shape[0]), column)
        at = place
        if place_ids is not None:
            lead = dims.ZERO if place_ids.shape[0] == 1 else item
            at = indirect(place_ids.load((lead, place)), places.shape[0])
        parts = [word, row(places, at, column)]
        if segments is not None and segment_table is not None:
            kind = indirect(segments.load((item, place)), segment_table.shape[0])
            parts.append(row(segment_table, kind, column))
        template = " + ".join(f"{{{i}}}" for i in range(len(parts)))
        return Call(number, template, tuple(parts))

    b.require(
        ids.shape[1], places.shape[0], f"{node.label}: {{low}} places, but {{high}} embeddings"
    )
    total = b.lazy(number, shape, read, element)
    if node.is_used(2):
        total.share(1)
    affine = normalization.scaled(gamma, beta, shape)
    epsilon = node.attr_float("epsilon", 1e-12)
    y = normalization.standardize(b, total, [2], epsilon, affine, number)
    return [y, _lengths(b, ids, mask) if node.is_used(1) else None, total]


def _lengths(b: Builder, ids: Tensor, mask: Tensor | None) -> Tensor:
    """How many places of each item the mask keeps; 0 without a mask, as in ONNX Runtime."""
    zero = Literal(dtype.INT32, 0)
    if mask is None:
        return b.lazy(dtype.INT32, ids.shape[:1], (), lambda _: zero)
    return Reduction(
        b,
        ids.shape[:1],
        ids.shape[1:],
        Combine("Sum", dtype.INT32),
        lambda outer, inner: Call(
            dtype.INT32, "static_cast<int32_t>({0} == 1)", (mask.load((*outer, *inner)),)
        ),
        lambda total: total,
        dtype.INT32,
        [mask],
    )
