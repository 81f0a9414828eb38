"""ReduceSumSquare: https://onnx.ai/onnx/operators/onnx__ReduceSumSquare.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction(
    "ReduceSumSquare", "Sum", since=1, dtypes=dtype.FLOATS, prepare=reduction.square
)
