"""Shrink: https://onnx.ai/onnx/operators/onnx__Shrink.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Shrink",
    "sofie::kernels::Shrink({0}, {1}, {2})",
    since=9,
    dtypes=dtype.NUMBERS,
    attributes=[("lambd", 0.5), ("bias", 0.0)],
)
