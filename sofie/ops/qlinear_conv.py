"""QLinearConv: https://onnx.ai/onnx/operators/onnx__QLinearConv.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import integer_convolution, quantization
from sofie.ops.elementwise import given
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import kernel_shape, window


@shape_rule("QLinearConv", since=10, types=[7])
def _shapes(node: Node) -> list[dims.Shape | None]:
    taps = window(node, kernel_shape(node, 3))
    return [(node.shape(0)[0], node.shape(3)[0], *taps.counts)]


def _check(node: Node) -> Iterator[str]:
    yield from integer_convolution.check(node, 3)


@operator("QLinearConv", since=10, dtypes=integer_convolution.TYPES, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The exact sums of the integers with their bias, then one factor and one rounding."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = given(inputs[:8])
    bias = inputs[8] if len(inputs) > 8 else None
    total = integer_convolution.sums(node, b, x, w, x_zero, w_zero, (3, 5))
    if bias is not None:
        b.require_equal(bias.shape[0], total.shape[1], "lengths of bias and weights")
    # Those of the weights may be one for each output channel.
    factors = [quantization.along(b, s, 1, total.shape) for s in (x_scale, w_scale, scale)]
    result_zero = quantization.along(b, zero, 1, total.shape)

    def element(index: Index) -> Expr:
        value = quantization.as_int32(total.load(index))
        if bias is not None:
            value = Call(dtype.INT32, "{0} + {1}", (value, bias.load(index[1:2])))
        x_factor, w_factor, factor = (f(index) for f in factors)
        scales = (x_factor, w_factor, factor)
        return quantization.requantized(node.out_dtype(), value, scales, result_zero(index))

    return [b.lazy(node.out_dtype(), total.shape, [total, *given(inputs)[1:]], element)]
