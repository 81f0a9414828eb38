"""FusedMatMul of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.FusedMatMul"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Permute, Tensor
from sofie.ops.elementwise import given
from sofie.ops.matmul import multiply
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.attr_int("transBatchA", 0) or node.attr_int("transBatchB", 0):
        yield "transBatchA or transBatchB"
    if any(len(node.shape(i)) < 2 for i in (0, 1)):
        yield "an operand that is a vector"


@operator("FusedMatMul", since=1, domain="com.microsoft", dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A product whose operands may be transposed, with a factor."""
    left, right = (
        _transposed(t) if node.attr_int(name, 0) else t
        for t, name in zip(given(inputs), ("transA", "transB"), strict=True)
    )
    return [multiply(b, left, right, node.out_shape(), node.attr_float("alpha", 1.0))]


def _transposed(x: Tensor) -> Tensor:
    return Permute(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))
