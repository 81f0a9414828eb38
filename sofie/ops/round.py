"""Round: https://onnx.ai/onnx/operators/onnx__Round.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Round",
    "sofie::kernels::Round({0})",
    since=11,
    dtypes=dtype.FLOATS,
)
