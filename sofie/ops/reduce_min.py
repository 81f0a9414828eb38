"""ReduceMin: https://onnx.ai/onnx/operators/onnx__ReduceMin.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction("ReduceMin", Rule("Min"), dtypes=dtype.ALL)
