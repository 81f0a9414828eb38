"""Asin: https://onnx.ai/onnx/operators/onnx__Asin.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Asin",
    "sofie::kernels::Asin({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
