"""ReduceMax: https://onnx.ai/onnx/operators/onnx__ReduceMax.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction("ReduceMax", "Max", since=1, dtypes=dtype.NUMBERS)
