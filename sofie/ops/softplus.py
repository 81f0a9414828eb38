"""Softplus: https://onnx.ai/onnx/operators/onnx__Softplus.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Softplus",
    "sofie::kernels::Softplus({0})",
    since=1,
    dtypes=dtype.FLOATS,
)
