"""HardSigmoid: https://onnx.ai/onnx/operators/onnx__HardSigmoid.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary(
    "HardSigmoid",
    "sofie::kernels::HardSigmoid({0}, {1}, {2})",
    since=6,
    dtypes=dtype.FLOATS,
    attributes=[("alpha", 0.2), ("beta", 0.5)],
)
