"""Mul: https://onnx.ai/onnx/operators/onnx__Mul.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Mul", "{0} * {1}", since=7, dtypes=dtype.NUMBERS)
