"""Sin: https://onnx.ai/onnx/operators/onnx__Sin.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Sin",
    "sofie::kernels::Sin({0})",
    since=7,
    dtypes=dtype.FLOATS,
)
