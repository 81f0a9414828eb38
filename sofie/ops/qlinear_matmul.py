"""QLinearMatMul: https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import quantization
from sofie.ops.elementwise import given
from sofie.ops.registry import operator

_TYPES = {dtype.INT8, dtype.UINT8}


def _check(node: Node) -> Iterator[str]:
    if node.dtype(3) not in _TYPES:
        yield f"a second operand of type {node.dtype(3).name}"


@operator("QLinearMatMul", since=10, dtypes=_TYPES, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The exact product of the integers, then one factor and one rounding."""
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = given(inputs)
    shape = node.out_shape()
    product = quantization.product(b, left, right, left_zero, right_zero, shape)
    rows = quantization.along(b, left_scale, -2, shape)
    columns = quantization.along(b, right_scale, -1, shape)
    result_scale = quantization.along(b, scale, -2, shape)
    result_zero = quantization.along(b, zero, -2, shape)

    def element(index: Index) -> Expr:
        total = quantization.as_int32(product.load(index))
        scales = rows(index), columns(index), result_scale(index)
        return quantization.requantized(node.out_dtype(), total, scales, result_zero(index))

    return [b.lazy(node.out_dtype(), shape, [product, *given(inputs)[1:]], element)]
