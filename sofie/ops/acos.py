"""Acos: https://onnx.ai/onnx/operators/onnx__Acos.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Acos",
    "sofie::kernels::Acos({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
