"""IsNaN: https://onnx.ai/onnx/operators/onnx__IsNaN.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.predicate(
    "IsNaN", "sofie::kernels::IsNaN({0})", since=9, dtypes=dtype.FLOATS | dtype.FLOAT8
)
