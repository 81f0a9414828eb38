"""Exp: https://onnx.ai/onnx/operators/onnx__Exp.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Exp", "sofie::kernels::Exp({0})", since=6, dtypes=dtype.FLOATS)
