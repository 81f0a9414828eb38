"""Gather: https://onnx.ai/onnx/operators/onnx__Gather.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import check_indices, indirect, require_elements
from sofie.ops.registry import operator


@operator("Gather", since=1, dtypes=dtype.ALL, check=check_indices)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Elements through an index tensor, read where they are needed."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    axis = node.axis(0)
    stop = axis + indices.rank
    require_elements(b, indices.shape, x.shape[axis : axis + 1])

    def element(index: Index) -> Expr:
        found = indirect(indices.load(index[axis:stop]), x.shape[axis])
        return x.load((*index[:axis], found, *index[stop:]))

    return [b.lazy(x.dtype, node.out_shape(), [x, indices], element)]
