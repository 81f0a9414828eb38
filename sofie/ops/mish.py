"""Mish: https://onnx.ai/onnx/operators/onnx__Mish.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Mish",
    "sofie::kernels::Mish({0})",
    since=18,
    dtypes=dtype.FLOATS,
)
