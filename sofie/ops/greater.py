"""Greater: https://onnx.ai/onnx/operators/onnx__Greater.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.comparison("Greater", ">", since=7, dtypes=dtype.NUMBERS)
