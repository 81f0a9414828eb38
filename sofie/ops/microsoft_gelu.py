"""Gelu of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.Gelu"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Gelu", "sofie::kernels::Gelu({0})", since=1, dtypes=dtype.FLOATS, domain="com.microsoft"
)
