"""Atanh: https://onnx.ai/onnx/operators/onnx__Atanh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Atanh",
    "sofie::kernels::Atanh({0})",
    since=9,
    dtypes=dtype.FLOATS,
)
