"""QuantizeLinear of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QuantizeLinear"""

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.node import Node
from sofie.ops import quantize_linear
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"


def _type(node: Node) -> onnx_ir.DataType:
    return node.input(2).dtype or onnx_ir.DataType.UINT8 if node.has(2) else onnx_ir.DataType.UINT8


@shape_rule("QuantizeLinear", domain=_DOMAIN, types=(_type,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


operator(
    "QuantizeLinear", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=quantize_linear.check
)(quantize_linear.lower)
