"""TensorScatter: https://onnx.ai/onnx/operators/onnx__TensorScatter.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    mode = node.attr_string("mode", "linear")
    if mode not in ("linear", "circular"):
        yield f"the mode {mode!r}"


@operator("TensorScatter", since=24, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The cache, with the update in place of what stands from an index on; one index a batch.

    Updates that would reach beyond the cache are cut off, or go on at its start if circular.
    """
    cache, update = inputs[0], inputs[1]
    starts = inputs[2] if len(inputs) > 2 else None
    assert cache is not None and update is not None
    axis = node.axis(-2)
    for a, (have, want) in enumerate(zip(update.shape, cache.shape, strict=True)):
        if a != axis:
            b.require_equal(have, want, f"extents of axis {a} of the update and the cache")
    length, most = update.shape[axis], cache.shape[axis]
    b.require(length, most, f"{node.label}: an update of {{low}} elements to a cache of {{high}}")
    if starts is not None:
        b.require_equal(starts.shape[0], cache.shape[0], "numbers of write indices and batches")
    wraps = node.attr_string("mode", "linear") == "circular"

    def element(index: Index) -> Expr:
        start: Expr = Literal(dtype.INT64, 0) if starts is None else starts.load(index[:1])
        at = IndexExpr(dtype.INT64, index[axis])
        distance = Call(dtype.INT64, "{0} - {1}", (at, start))
        if wraps:
            extent = IndexExpr(dtype.INT64, most)
            distance = Call(dtype.INT64, "sofie::kernels::FloorMod({0}, {1})", (distance, extent))
        inner = Indirect(distance)
        kept = Select(
            cache.dtype,
            compare("<", inner, length),
            update.load((*index[:axis], inner, *index[axis + 1 :])),
            cache.load(index),
        )
        if wraps:
            return kept
        return Select(cache.dtype, compare(">=", inner, dims.ZERO), kept, cache.load(index))

    sources = [cache, update, *([starts] if starts is not None else [])]
    return [b.lazy(cache.dtype, cache.shape, sources, element)]
