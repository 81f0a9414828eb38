"""LeakyRelu: https://onnx.ai/onnx/operators/onnx__LeakyRelu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "LeakyRelu",
    "sofie::kernels::LeakyRelu({0}, {1})",
    since=6,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 0.01)],
)
