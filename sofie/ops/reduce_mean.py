"""ReduceMean: https://onnx.ai/onnx/operators/onnx__ReduceMean.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction(
    "ReduceMean",
    Rule("Sum", finish=reduction.divide_by_count),
    dtypes=dtype.FLOATS | dtype.WIDE_INTEGERS,
)
