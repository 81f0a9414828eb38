"""ThresholdedRelu: https://onnx.ai/onnx/operators/onnx__ThresholdedRelu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "ThresholdedRelu",
    "sofie::kernels::ThresholdedRelu({0}, {1})",
    since=10,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 1.0)],
)
