"""HardSwish: https://onnx.ai/onnx/operators/onnx__HardSwish.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "HardSwish",
    "sofie::kernels::HardSwish({0})",
    since=14,
    dtypes=dtype.FLOATS,
)
