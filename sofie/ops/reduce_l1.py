"""ReduceL1: https://onnx.ai/onnx/operators/onnx__ReduceL1.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction("ReduceL1", "Sum", since=1, dtypes=dtype.FLOATS, prepare=reduction.magnitude)
