"""Tan: https://onnx.ai/onnx/operators/onnx__Tan.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Tan",
    "sofie::kernels::Tan({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
