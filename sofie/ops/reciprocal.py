"""Reciprocal: https://onnx.ai/onnx/operators/onnx__Reciprocal.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Reciprocal",
    "sofie::kernels::Reciprocal({0})",
    since=6,
    dtypes=dtype.FLOATS,
)
