"""Concat: https://onnx.ai/onnx/operators/onnx__Concat.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import given
from sofie.ops.registry import operator


@operator("Concat", since=4, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Every element from the input in whose range its index falls."""
    tensors = given(inputs)
    axis = node.axis()
    for tensor in tensors[1:]:
        for a in range(tensor.rank):
            if a != axis:
                b.require_equal(tensors[0].shape[a], tensor.shape[a], f"extents of axis {a}")
    starts = [dims.ZERO]
    for tensor in tensors:
        starts.append(starts[-1] + tensor.shape[axis])

    def element(index: Index) -> Expr:
        def part(position: int) -> Expr:
            inner = list(index)
            inner[axis] = index[axis] - starts[position]
            return tensors[position].load(tuple(inner))

        result = part(len(tensors) - 1)
        for position in reversed(range(len(tensors) - 1)):
            inside = compare("<", index[axis], starts[position + 1])
            result = Select(result.dtype, inside, part(position), result)
        return result

    return [b.lazy(tensors[0].dtype, node.out_shape(), tensors, element)]
