"""ConvInteger: https://onnx.ai/onnx/operators/onnx__ConvInteger.html"""

from collections.abc import Iterator, Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import integer_convolution, quantization
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import kernel_shape, window


@shape_rule("ConvInteger", since=10, types=[onnx_ir.DataType.INT32])
def _shapes(node: Node) -> list[dims.Shape | None]:
    taps = window(node, kernel_shape(node, 1))
    return [(node.shape(0)[0], node.shape(1)[0], *taps.counts)]


def _check(node: Node) -> Iterator[str]:
    yield from integer_convolution.check(node, 1)


@operator("ConvInteger", since=10, dtypes=integer_convolution.TYPES, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A convolution of floating-point numbers that hold every sum exactly."""
    x, w, x_zero, w_zero = (*inputs, None, None)[:4]
    assert x is not None and w is not None
    total = integer_convolution.sums(node, b, x, w, x_zero, w_zero, (1, 3))

    def element(index: Index) -> Expr:
        return quantization.as_int32(total.load(index))

    return [b.lazy(dtype.INT32, total.shape, [total], element)]
