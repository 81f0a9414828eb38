"""Gather: https://onnx.ai/onnx/operators/onnx__Gather.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Indirect
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import wrapped
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.dtype(1) not in (dtype.INT32, dtype.INT64):
        yield f"indices of type {node.dtype(1).name}"


@operator("Gather", since=1, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Elements through an index tensor, read where they are needed."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    axis = node.axis(0)
    stop = axis + indices.rank

    def element(index: Index) -> Expr:
        found = Indirect(wrapped(indices.load(index[axis:stop]), x.shape[axis]))
        return x.load((*index[:axis], found, *index[stop:]))

    return [b.lazy(x.dtype, node.out_shape(), [x, indices], element)]
