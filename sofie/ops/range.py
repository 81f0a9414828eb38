"""Range: https://onnx.ai/onnx/operators/onnx__Range.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if any(node.known(i) is None for i in range(3)):
        yield "a start, limit or delta that depends on data or is not an integer"


@operator("Range", since=11, dtypes={dtype.INT64}, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Arithmetic on the index; nothing is stored."""
    start, delta = node.known(0), node.known(2)
    assert start is not None and delta is not None

    def element(index: Index) -> Expr:
        return IndexExpr(dtype.INT64, start[0] + index[0] * delta[0])

    return [b.lazy(dtype.INT64, node.out_shape(), (), element)]
