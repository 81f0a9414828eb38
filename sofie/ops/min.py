"""Min: https://onnx.ai/onnx/operators/onnx__Min.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.variadic("Min", "sofie::kernels::Minimum({0}, {1})", since=8, dtypes=dtype.NUMBERS)
