"""Erf: https://onnx.ai/onnx/operators/onnx__Erf.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Erf", "sofie::kernels::Erf({0})", since=9, dtypes=dtype.FLOATS)
