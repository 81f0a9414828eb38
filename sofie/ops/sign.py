"""Sign: https://onnx.ai/onnx/operators/onnx__Sign.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "Sign",
    "sofie::kernels::Sign({0})",
    since=9,
    dtypes=dtype.NUMBERS,
)
