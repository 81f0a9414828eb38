"""Neg: https://onnx.ai/onnx/operators/onnx__Neg.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Neg", "-{0}", since=6, dtypes=dtype.SIGNED)
