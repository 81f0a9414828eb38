"""Tanh: https://onnx.ai/onnx/operators/onnx__Tanh.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Tanh", "sofie::kernels::Tanh({0})", since=6, dtypes=dtype.FLOATS)
