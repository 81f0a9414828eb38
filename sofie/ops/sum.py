"""Sum: https://onnx.ai/onnx/operators/onnx__Sum.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.variadic("Sum", "{0} + {1}", since=8, dtypes=dtype.FLOATS)
