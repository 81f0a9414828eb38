"""Ceil: https://onnx.ai/onnx/operators/onnx__Ceil.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Ceil",
    "sofie::kernels::Ceil({0})",
    since=6,
    dtypes=dtype.FLOATS,
)
