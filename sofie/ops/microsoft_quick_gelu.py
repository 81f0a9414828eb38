"""QuickGelu of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QuickGelu"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "QuickGelu",
    "sofie::kernels::Swish({0}, {1})",
    since=1,
    dtypes=dtype.FLOATS,
    domain="com.microsoft",
    attributes=[("alpha", 1.702)],
)
