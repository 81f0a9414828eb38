"""Elu: https://onnx.ai/onnx/operators/onnx__Elu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Elu",
    "sofie::kernels::Elu({0}, {1})",
    since=6,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 1.0)],
)
