"""ReduceSum: https://onnx.ai/onnx/operators/onnx__ReduceSum.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction("ReduceSum", "Sum", since=1, dtypes=dtype.NUMBERS)
