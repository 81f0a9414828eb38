"""MatMulInteger: https://onnx.ai/onnx/operators/onnx__MatMulInteger.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import quantization
from sofie.ops.registry import operator


@operator("MatMulInteger", since=10, dtypes={dtype.INT8, dtype.UINT8})
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A product of floating-point numbers that hold every sum exactly."""
    left, right, left_zero, right_zero = (*inputs, None, None)[:4]
    assert left is not None and right is not None
    product = quantization.product(b, left, right, left_zero, right_zero, node.out_shape())

    def element(index: Index) -> Expr:
        return quantization.as_int32(product.load(index))

    return [b.lazy(dtype.INT32, product.shape, [product], element)]
