"""ScatterElements: https://onnx.ai/onnx/operators/onnx__ScatterElements.html

Scatter is its name in opsets 9 and 10.
"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import scattering
from sofie.ops.indexing import indirect, require_elements
from sofie.ops.registry import operator


@operator("Scatter", since=9, until=10, dtypes=dtype.ALL, check=scattering.check)
@operator("ScatterElements", since=11, dtypes=dtype.ALL, check=scattering.check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Updates whose index along one axis comes from a tensor."""
    x, indices, updates = inputs
    assert x is not None and indices is not None and updates is not None
    axis = node.axis(0)
    for a, (have, want) in enumerate(zip(updates.shape, indices.shape, strict=True)):
        b.require_equal(have, want, f"extents of axis {a} of updates and indices")
        if a != axis:
            message = f"{node.label}: indices have {{low}} elements along axis {a} of {{high}}"
            b.require(want, x.shape[a], message)
    require_elements(b, indices.shape, x.shape[axis : axis + 1])

    def position(index: Index) -> Index:
        found = indirect(indices.load(index), x.shape[axis])
        return (*index[:axis], found, *index[axis + 1 :])

    return [b.scatter(x, updates, [axis], position, scattering.combine(node), [indices])]
