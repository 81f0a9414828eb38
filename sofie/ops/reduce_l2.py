"""ReduceL2: https://onnx.ai/onnx/operators/onnx__ReduceL2.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceL2",
    Rule("Sum", reduction.real, reduction.square, reduction.square_root),
    dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS,
)
