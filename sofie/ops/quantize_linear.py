"""QuantizeLinear: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html"""

from collections.abc import Iterator, Sequence

import onnx_ir

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import quantization
from sofie.ops.registry import operator


def check(node: Node) -> Iterator[str]:
    """Reasons against the scale and the precision."""
    yield from quantization.check_blocks(node)
    if node.dtype(1) not in dtype.FLOATS:
        yield f"a scale of type {node.dtype(1).name}"
    if node.attr_int("precision", 0) and _precision(node) not in dtype.FLOATS:
        yield "a precision that is no floating-point type"


def _precision(node: Node) -> dtype.DType | None:
    """The type of the division: the scale's, unless the node says another."""
    given = node.attr_int("precision", 0)
    return dtype.from_onnx(onnx_ir.DataType(given)) if given else node.dtype(1)


@operator("QuantizeLinear", since=10, dtypes=dtype.FLOATS | {dtype.INT32}, check=check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``saturate(round(x / scale) + zero_point)``."""
    x, scales = inputs[0], inputs[1]
    zeros = inputs[2] if len(inputs) > 2 else None
    precision, result = _precision(node), node.out_dtype()
    assert x is not None and scales is not None and precision is not None
    scale = quantization.parameter(node, b, scales, x)
    zero = None if zeros is None else quantization.parameter(node, b, zeros, x)
    number = precision.cpp
    saturate = "true" if node.attr_int("saturate", 1) else "false"

    def element(index: Index) -> Expr:
        template = f"static_cast<{number}>({{0}}) / static_cast<{number}>({{1}})"
        quotient = Call(precision, template, (x.load(index), scale(index)))
        if result in dtype.SMALL_FLOATS:
            return Call(result, f"{result.storage}::From({{0}}, {saturate})", (quotient,))
        return quantization.saturated(result, quotient, None if zero is None else zero(index))

    given = [t for t in (x, scales, zeros) if t is not None]
    return [b.lazy(result, node.out_shape(), given, element)]
