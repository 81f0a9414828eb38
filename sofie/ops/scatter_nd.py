"""ScatterND: https://onnx.ai/onnx/operators/onnx__ScatterND.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import scattering
from sofie.ops.indexing import index_depth, indirect, require_elements
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    yield from scattering.check(node)
    if not node.shape(1)[-1].is_Integer:
        yield "index tuples of symbolic length"


@operator("ScatterND", since=11, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Updates of slices that index tuples point to."""
    x, indices, updates = inputs
    assert x is not None and indices is not None and updates is not None
    depth, lead = index_depth(node), indices.rank - 1
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    for axis, (have, want) in enumerate(zip(updates.shape, wanted, strict=True)):
        b.require_equal(have, want, f"the extent of axis {axis} of the updates and what it must be")
    require_elements(b, indices.shape, x.shape[:depth])

    def position(index: Index) -> Index:
        found = [
            indirect(indices.load((*index[:lead], dims.ONE * part)), x.shape[part])
            for part in range(depth)
        ]
        return (*found, *index[lead:])

    return [b.scatter(x, updates, range(lead), position, scattering.combine(node), [indices])]
