"""BitwiseAnd: https://onnx.ai/onnx/operators/onnx__BitwiseAnd.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("BitwiseAnd", "{0} & {1}", since=18, dtypes=dtype.INTEGERS)
