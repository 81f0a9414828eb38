"""Less: https://onnx.ai/onnx/operators/onnx__Less.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.comparison("Less", "<", since=7, dtypes=dtype.NUMBERS)
