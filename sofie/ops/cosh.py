"""Cosh: https://onnx.ai/onnx/operators/onnx__Cosh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Cosh",
    "sofie::kernels::Cosh({0})",
    since=9,
    dtypes=dtype.FLOATS,
)
