"""BitwiseNot: https://onnx.ai/onnx/operators/onnx__BitwiseNot.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("BitwiseNot", "~{0}", since=18, dtypes=dtype.INTEGERS)
