"""ReduceSum: https://onnx.ai/onnx/operators/onnx__ReduceSum.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction("ReduceSum", Rule("Sum"), dtypes=dtype.NUMBERS)
