"""Relu: https://onnx.ai/onnx/operators/onnx__Relu.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Relu", "sofie::kernels::Relu({0})", since=6, dtypes=dtype.SIGNED)
