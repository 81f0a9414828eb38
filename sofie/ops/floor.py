"""Floor: https://onnx.ai/onnx/operators/onnx__Floor.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Floor",
    "sofie::kernels::Floor({0})",
    since=6,
    dtypes=dtype.FLOATS,
)
