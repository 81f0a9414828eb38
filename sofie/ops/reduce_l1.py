"""ReduceL1: https://onnx.ai/onnx/operators/onnx__ReduceL1.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceL1", Rule("Sum", prepare=reduction.magnitude), dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS
)
