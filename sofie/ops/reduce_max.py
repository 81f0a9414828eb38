"""ReduceMax: https://onnx.ai/onnx/operators/onnx__ReduceMax.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction("ReduceMax", Rule("Max"), dtypes=dtype.ALL)
