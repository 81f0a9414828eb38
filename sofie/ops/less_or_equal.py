"""LessOrEqual: https://onnx.ai/onnx/operators/onnx__LessOrEqual.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.comparison("LessOrEqual", "<=", since=12, dtypes=dtype.NUMBERS)
