"""Trilu of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.Trilu"""

from sofie.ir import dims, dtype
from sofie.ir.node import Node
from sofie.ops import trilu
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"


@shape_rule("Trilu", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


operator("Trilu", since=1, domain=_DOMAIN, dtypes=dtype.ALL)(trilu.lower)
