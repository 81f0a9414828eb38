"""ReduceMin: https://onnx.ai/onnx/operators/onnx__ReduceMin.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction("ReduceMin", "Min", since=1, dtypes=dtype.NUMBERS)
