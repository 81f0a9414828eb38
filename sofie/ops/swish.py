"""Swish: https://onnx.ai/onnx/operators/onnx__Swish.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Swish",
    "sofie::kernels::Swish({0}, {1})",
    since=24,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 1.0)],
)
