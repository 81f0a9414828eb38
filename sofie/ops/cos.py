"""Cos: https://onnx.ai/onnx/operators/onnx__Cos.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Cos",
    "sofie::kernels::Cos({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
