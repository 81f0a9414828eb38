"""GatherElements: https://onnx.ai/onnx/operators/onnx__GatherElements.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import check_indices, indirect, require_elements
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("GatherElements", since=11)
def _shapes(node: Node) -> list[dims.Shape | None]:
    return [node.shape(1)]


@operator("GatherElements", since=11, dtypes=dtype.ALL, check=check_indices)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Elements whose index along one axis comes from a tensor of the output's shape."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    axis = node.axis(0)
    for a, (extent, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if a != axis:
            message = f"{node.label}: indices have {{low}} elements along axis {a} of {{high}}"
            b.require(extent, most, message)
    require_elements(b, indices.shape, x.shape[axis : axis + 1])

    def element(index: Index) -> Expr:
        found = indirect(indices.load(index), x.shape[axis])
        return x.load((*index[:axis], found, *index[axis + 1 :]))

    return [b.lazy(x.dtype, indices.shape, [x, indices], element)]
