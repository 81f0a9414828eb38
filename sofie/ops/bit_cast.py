"""BitCast: https://onnx.ai/onnx/operators/onnx__BitCast.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import given
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if _bits(node.dtype(0)) != _bits(node.out_dtype()):
        yield f"types of different sizes ({node.dtype(0).name}, {node.out_dtype().name})"


def _bits(kind: dtype.DType) -> int:
    return 8 * kind.size // kind.per_byte


@operator("BitCast", since=26, dtypes=dtype.EVERY, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The same bits as another type."""
    (x,) = given(inputs)
    result = node.out_dtype()

    def element(index: Index) -> Expr:
        template = f"std::bit_cast<{result.storage}>({{0}})"
        return Call(result, template, (x.load(index),), stored=True)

    return [b.lazy(result, x.shape, [x], element)]
