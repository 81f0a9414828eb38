"""BitwiseOr: https://onnx.ai/onnx/operators/onnx__BitwiseOr.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("BitwiseOr", "{0} | {1}", since=18, dtypes=dtype.INTEGERS)
