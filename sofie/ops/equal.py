"""Equal: https://onnx.ai/onnx/operators/onnx__Equal.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.comparison("Equal", "==", since=7, dtypes=dtype.ALL)
