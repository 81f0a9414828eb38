"""Selu: https://onnx.ai/onnx/operators/onnx__Selu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Selu",
    "sofie::kernels::Selu({0}, {1}, {2})",
    since=6,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 1.6732631921768188), ("gamma", 1.0507010221481323)],
)
