"""Acosh: https://onnx.ai/onnx/operators/onnx__Acosh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Acosh",
    "sofie::kernels::Acosh({0})",
    since=9,
    dtypes=dtype.FLOATS,
)
