"""ReduceLogSumExp: https://onnx.ai/onnx/operators/onnx__ReduceLogSumExp.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceLogSumExp",
    Rule("MaxSumExp", reduction.real, finish=reduction.log_sum_exp),
    dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS,
)
