"""Softsign: https://onnx.ai/onnx/operators/onnx__Softsign.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Softsign",
    "sofie::kernels::Softsign({0})",
    since=1,
    dtypes=dtype.FLOATS,
)
