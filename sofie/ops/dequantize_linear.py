"""DequantizeLinear: https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import quantization
from sofie.ops.registry import operator

INTEGERS = {dtype.INT8, dtype.INT16, dtype.INT32, dtype.UINT8, dtype.UINT16}
_TYPES = INTEGERS | dtype.SMALL_INTEGERS | dtype.SMALL_FLOATS


def check(node: Node) -> Iterator[str]:
    """Reasons against the scale."""
    yield from quantization.check_blocks(node)


@operator("DequantizeLinear", since=10, dtypes=_TYPES, check=check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``(x - zero_point) * scale``, the difference of integers exact, the product in float32."""
    x, scales = inputs[0], inputs[1]
    zeros = inputs[2] if len(inputs) > 2 else None
    assert x is not None and scales is not None
    scale = quantization.parameter(node, b, scales, x)
    # Floating-point types have no zero point but 0.
    zero = None if zeros is None or x.dtype.is_float else quantization.parameter(node, b, zeros, x)
    centred = quantization.centred(b, dtype.FLOAT32, x, zero)
    result = node.out_dtype()

    def element(index: Index) -> Expr:
        return Call(result, "{0} * {1}", (centred.load(index), scale(index)))

    given = [t for t in (x, scales, zeros) if t is not None]
    return [b.lazy(result, node.out_shape(), given, element)]
