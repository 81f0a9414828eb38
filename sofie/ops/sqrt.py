"""Sqrt: https://onnx.ai/onnx/operators/onnx__Sqrt.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Sqrt", "sofie::kernels::Sqrt({0})", since=6, dtypes=dtype.FLOATS)
