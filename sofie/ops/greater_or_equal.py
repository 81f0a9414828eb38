"""GreaterOrEqual: https://onnx.ai/onnx/operators/onnx__GreaterOrEqual.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.comparison("GreaterOrEqual", ">=", since=12, dtypes=dtype.NUMBERS)
