"""Celu: https://onnx.ai/onnx/operators/onnx__Celu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Celu",
    "sofie::kernels::Celu({0}, {1})",
    since=12,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 1.0)],
)
