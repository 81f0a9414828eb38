"""Abs: https://onnx.ai/onnx/operators/onnx__Abs.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Abs", "sofie::kernels::Abs({0})", since=6, dtypes=dtype.NUMBERS)
