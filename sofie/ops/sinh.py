"""Sinh: https://onnx.ai/onnx/operators/onnx__Sinh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Sinh",
    "sofie::kernels::Sinh({0})",
    since=9,
    dtypes=dtype.FLOATS,
)
