"""ReduceSumSquare: https://onnx.ai/onnx/operators/onnx__ReduceSumSquare.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceSumSquare",
    Rule("Sum", prepare=reduction.square),
    dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS,
)
