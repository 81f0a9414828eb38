"""Atan: https://onnx.ai/onnx/operators/onnx__Atan.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Atan",
    "sofie::kernels::Atan({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
