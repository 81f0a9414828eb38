"""Asinh: https://onnx.ai/onnx/operators/onnx__Asinh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Asinh",
    "sofie::kernels::Asinh({0})",
    since=9,
    dtypes=dtype.FLOATS,
)
