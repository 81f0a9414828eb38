"""ReduceLogSum: https://onnx.ai/onnx/operators/onnx__ReduceLogSum.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceLogSum",
    Rule("Sum", reduction.real, finish=reduction.logarithm),
    dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS,
)
