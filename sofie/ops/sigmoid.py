"""Sigmoid: https://onnx.ai/onnx/operators/onnx__Sigmoid.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Sigmoid", "sofie::kernels::Sigmoid({0})", since=6, dtypes=dtype.FLOATS)
