"""Max: https://onnx.ai/onnx/operators/onnx__Max.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.variadic("Max", "sofie::kernels::Maximum({0}, {1})", since=8, dtypes=dtype.NUMBERS)
