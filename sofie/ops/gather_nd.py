"""GatherND: https://onnx.ai/onnx/operators/onnx__GatherND.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import check_indices, index_depth, indirect, require_elements
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    yield from check_indices(node)
    if not node.shape(1)[-1].is_Integer:
        yield "index tuples of symbolic length"


@shape_rule("GatherND", since=11)
def _shapes(node: Node) -> list[dims.Shape | None]:
    batch, depth = node.attr_int("batch_dims", 0), index_depth(node)
    return [(*node.shape(1)[:-1], *node.shape(0)[batch + depth :])]


@operator("GatherND", since=11, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Slices through a tensor of index tuples, read where they are needed."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    batch, depth = node.attr_int("batch_dims", 0), index_depth(node)
    for axis in range(batch):
        b.require_equal(x.shape[axis], indices.shape[axis], f"batch extents of axis {axis}")
    require_elements(b, indices.shape, x.shape[batch : batch + depth])
    lead = indices.rank - 1
    shape = _shapes(node)[0]
    assert shape is not None

    def element(index: Index) -> Expr:
        found = [
            indirect(indices.load((*index[:lead], dims.ONE * part)), x.shape[batch + part])
            for part in range(depth)
        ]
        return x.load((*index[:batch], *found, *index[lead:]))

    return [b.lazy(x.dtype, shape, [x, indices], element)]
