"""BitwiseXor: https://onnx.ai/onnx/operators/onnx__BitwiseXor.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("BitwiseXor", "{0} ^ {1}", since=18, dtypes=dtype.INTEGERS)
