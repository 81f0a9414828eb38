"""Div: https://onnx.ai/onnx/operators/onnx__Div.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Div", "sofie::kernels::Divide({0}, {1})", since=7, dtypes=dtype.NUMBERS)
