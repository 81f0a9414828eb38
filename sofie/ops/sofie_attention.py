"""Attention as the pass ``fuse_attention`` writes it: a softmax between two matrix products.

    MatMul(Softmax(scale * MatMul(q, transposed k) + bias), v)

with axes before the last two that broadcast like those of MatMul, of ranks 2 to 4. Other than the
Attention of ONNX, a bias of -inf is a number like others: a row of nothing else gives NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.attention import Inputs, attention
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Reshape, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

DOMAIN = "sofie"
VERSION = 1


@shape_rule("Attention", domain=DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    query, value = node.shape(0), node.shape(2)
    return [(*_batch([query, node.shape(1), value]), query[-2], value[-1])]


def _batch(shapes: Sequence[dims.Shape]) -> dims.Shape:
    """What the axes before the last two broadcast to."""
    result = shapes[0][:-2]
    for shape in shapes[1:]:
        result = tuple(dims.broadcast(a, b) for a, b in zip(result, shape[:-2], strict=True))
    return result


@operator("Attention", since=VERSION, domain=DOMAIN, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One kernel, which has no scores in memory."""
    query, key, value = (t for t in inputs[:3] if t is not None)
    bias = inputs[3] if len(inputs) > 3 else None
    batch = _batch([query.shape, key.shape, value.shape])
    b.require_equal(query.shape[-1], key.shape[-1], "channels of queries and keys")
    b.require_equal(key.shape[-2], value.shape[-2], "rows of keys and values")

    def stretched(x: Tensor, rows: dims.Expr, columns: dims.Expr) -> Tensor:
        """The operand with all axes: batch, heads, rows, columns."""
        shape = (*batch, rows, columns)
        b.require_broadcast(x.shape, shape)
        if x.shape != shape:
            x = Broadcast(x, shape)
        return Reshape(x, ((dims.ONE,) * (4 - len(shape)) + shape))

    rows, keys = query.shape[-2], key.shape[-2]
    result, _ = attention(
        b,
        Inputs(
            stretched(query, rows, query.shape[-1]),
            stretched(key, keys, key.shape[-1]),
            stretched(value, keys, value.shape[-1]),
            scale=node.attr_float("scale", 1.0),
            bias=None if bias is None else stretched(bias, rows, keys),
            masks=False,
        ),
    )
    return [Reshape(result, node.out_shape())]
