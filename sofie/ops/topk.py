"""TopK: https://onnx.ai/onnx/operators/onnx__TopK.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.known(1) is None:
        yield "a K that is not one number"


@operator("TopK", since=10, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A row at a time; equal elements go to the lowest index."""
    x, known = inputs[0], node.known(1)
    assert x is not None and known is not None
    axis, k = node.axis(-1), known[0]
    b.require(
        k,
        x.shape[axis],
        f"{node.label}: TopK takes K = {{low}} elements along an axis of {{high}}; "
        "give inputs of at least that size",
    )
    used = (node.is_used(0), node.is_used(1))
    largest, is_sorted = node.attr_int("largest", 1) == 1, node.attr_int("sorted", 1) == 1
    return list(b.topk(x, axis, k, largest, is_sorted, used))
