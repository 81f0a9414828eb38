"""Log: https://onnx.ai/onnx/operators/onnx__Log.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Log", "sofie::kernels::Log({0})", since=6, dtypes=dtype.FLOATS)
