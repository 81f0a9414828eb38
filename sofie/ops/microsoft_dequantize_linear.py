"""DequantizeLinear of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.DequantizeLinear"""

from sofie.ir import dims
from sofie.ir.node import Node
from sofie.ops import dequantize_linear
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"


@shape_rule("DequantizeLinear", domain=_DOMAIN, types=(1,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


operator(
    "DequantizeLinear",
    since=1,
    domain=_DOMAIN,
    dtypes=dequantize_linear.INTEGERS,
    check=dequantize_linear.check,
)(dequantize_linear.lower)
