"""Tile: https://onnx.ai/onnx/operators/onnx__Tile.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.known(1) is None:
        yield "a number of repeats that is not known at build time"


@operator("Tile", since=6, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A stretched view where an axis of extent 1 repeats, else indices modulo the extent."""
    x = inputs[0]
    repeats = node.known(1)
    assert x is not None and repeats is not None
    shape = node.out_shape()
    pairs = list(zip(x.shape, repeats, strict=True))
    if all(extent == 1 or repeat == 1 for extent, repeat in pairs):
        return [Broadcast(x, shape)]

    def element(index: Index) -> Expr:
        inner = [
            i if repeat == 1 else dims.FloorMod(i, extent)
            for i, (extent, repeat) in zip(index, pairs, strict=True)
        ]
        return x.load(tuple(inner))

    return [b.lazy(x.dtype, shape, [x], element)]
